// The MNIST net for 20 steps of AdamW against PyTorch: losses, and norms and samples of all parameters at the end.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/loss.h"
#include "models/mnist.h"
#include "optim/adam.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

constexpr int64_t kSteps = 20, kBatch = 16, kSamples = 8;

// The formulas of mnist_cases.py.

/// A 32-bit mixing hash of (index, stream).
uint32_t mix(int64_t index, int64_t stream) {
  uint32_t x = static_cast<uint32_t>(index) * 2654435761u + static_cast<uint32_t>(stream * 40503);
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/// In [0, 1), 24 bits: exact in f32.
double unit(int64_t index, int64_t stream) { return (mix(index, stream) >> 8) / 16777216.0; }

/// Parameter number p, element i: uniform in ±1 / sqrt(fan-in) from stream p.
void initialise(nn::Module& net, DType dtype) {
  int64_t p = 0;
  double fan_in = 1;
  for (const Named& parameter : net.parameters()) {
    const Tensor& value = parameter.value;
    if (value.dim() > 1) fan_in = static_cast<double>(value.numel() / value.size(0));  // a bias follows its weight
    std::vector<double> u(static_cast<size_t>(value.numel()));
    for (size_t i = 0; i < u.size(); ++i) u[i] = (2 * unit(static_cast<int64_t>(i), p) - 1) / std::sqrt(fan_in);
    value.detach().copy_(from(u, value.sizes()).to(dtype));
    ++p;
  }
}

/// Noise with a bright band at the label's height.
std::pair<Tensor, Tensor> batch(int64_t step, DType dtype) {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < kBatch; ++i) labels.push_back(mix(i, 1000 + step) % 10);
  std::vector<double> pixels;
  for (int64_t i = 0; i < kBatch * 784; ++i) {
    const int64_t row = i % 784 / 28, label = labels[static_cast<size_t>(i / 784)];
    const double grey = unit(i, 100 + step) * 0.5 + (row * 10 / 28 == label ? 0.5 : 0.0);
    pixels.push_back((grey - 0.1307) / 0.3081);
  }
  return {from(pixels, {kBatch, 1, 28, 28}).to(dtype), from(labels, {kBatch})};
}

struct Run {
  std::vector<double> losses;
  models::MnistNet net;
};

void train(Run& run, DType dtype, int64_t steps) {
  run.net.to(dtype);
  initialise(run.net, dtype);
  optim::AdamW adam(run.net.parameters(), {.lr = 1e-3, .weight_decay = 0.01});
  for (int64_t step = 0; step < steps; ++step) {
    const auto [x, y] = batch(step, dtype);
    adam.zero_grad();
    const Tensor loss = cross_entropy(run.net(x), y);
    loss.backward();
    adam.step();
    run.losses.push_back(loss.item());
  }
}

/// Errors are relative to max(1, magnitude). Adam divides a gradient by its own size, so where gradients are about as
/// small as their rounding errors (parameters of units that hardly act) a step of up to `lr` hangs on rounding.
void check(DType dtype, double losses, double norms, double samples) {
  Run run;
  train(run, dtype, WEFT_GOLDEN_STEPS);
  const auto entries = load_golden("mnist_net");
  const std::string prefix = std::string(name(dtype));
  expect_near(from(run.losses, {WEFT_GOLDEN_STEPS}), entries.at(prefix).at("losses").narrow(0, 0, WEFT_GOLDEN_STEPS),
              losses, "losses");
  if (WEFT_GOLDEN_STEPS < kSteps) return;
  size_t compared = 1;
  for (const Named& parameter : run.net.parameters()) {
    SCOPED_TRACE(parameter.name);
    const std::vector<double> values = parameter.value.to_vector<double>();
    double squares = 0;
    for (const double v : values) squares += v * v;
    std::vector<double> picked;
    for (size_t k = 0; k < kSamples; ++k) picked.push_back(values[k * values.size() / kSamples]);
    const GoldenEntry& entry = entries.at(prefix + "/" + parameter.name);
    expect_near(scalar(std::sqrt(squares), f64), entry.at("norm"), norms, "norm");
    expect_near(from(picked, {kSamples}), entry.at("samples"), samples, "samples");
    ++compared;
  }
  size_t there = 0;
  for (const auto& [key, entry] : entries) there += key.starts_with(prefix);
  EXPECT_EQ(compared, there) << "PyTorch has other parameters";
}

TEST(Golden, mnist_net) { check(f64, 1e-9, 1e-9, 1e-9); }
TEST(Golden, MnistNetInSinglePrecision) { check(f32, 1e-4, 1e-4, 1e-4); }

}  // namespace
}  // namespace weft::testing
