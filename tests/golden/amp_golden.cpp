// A small net for some steps in mixed precision against PyTorch's.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pool.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/module.h"
#include "optim/sgd.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

constexpr int64_t kSteps = 4;

/// The net of amp_cases.py.
struct Net : nn::Module {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", {.in = 2, .out = 8, .kernel = 3, .padding = 1});
  nn::Linear& fc1 = add<nn::Linear>("fc1", {.in = 72, .out = 16});
  nn::Linear& fc2 = add<nn::Linear>("fc2", {.in = 16, .out = 16});
  nn::Linear& fc3 = add<nn::Linear>("fc3", {.in = 16, .out = 5});

  Tensor forward(const Tensor& x) override {
    Tensor h = fc1(max_pool2d(relu(conv(x))).flatten(1)).to(f32);
    h = h + fc2(relu(h));
    return fc3(tanh(h));
  }
};

/// Largest difference, relative to the largest value.
double difference(const Tensor& got, const Tensor& wanted) {
  EXPECT_EQ(str(got.sizes()), str(wanted.sizes()));
  const auto g = got.to_vector<double>(), w = wanted.to_vector<double>();
  double worst = 0, largest = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    worst = std::max(worst, std::fabs(g[i] - w[i]));
    largest = std::max(largest, std::fabs(w[i]));
  }
  return worst / largest;
}

/// What the net gives in `dtype`, by the names of the file, and how far each is from PyTorch's.
std::map<std::string, double> differences(DType dtype) {
  const auto entries = load_golden("amp");
  Net net;
  std::vector<Named> start;
  for (const auto& [name, value] : entries.at("parameters")) start.push_back({name, value.to(f32)});
  net.load_state_dict(start);
  const Tensor x = entries.at("data").at("x").to(f32), y = entries.at("data").at("y");
  optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
  std::map<std::string, double> out;
  for (int64_t step = 0; step < kSteps; ++step) {
    const GoldenEntry& wanted = entries.at(fmt::format("step{}", step));
    sgd.zero_grad();
    Tensor logits, loss;
    {
      const Autocast guard(dtype);
      logits = net(x);
      loss = cross_entropy(logits, y);
    }
    EXPECT_EQ(logits.dtype(), dtype);
    loss.backward();
    out[fmt::format("step{}/logits", step)] = difference(logits, wanted.at("logits"));
    out[fmt::format("step{}/loss", step)] = difference(loss, wanted.at("loss"));
    for (const Named& p : net.parameters())
      if (const auto grad = wanted.find(p.name); grad != wanted.end())
        out[fmt::format("step{}/{}", step, p.name)] = difference(p.value.grad(), grad->second);
    sgd.step();
  }
  return out;
}

/// Rounding to bf16 happens at the same places, so results are equal but for sums that were added in another order and
/// now round to the other neighbour: 2^-9 of a value. In f32 the same net is farther away, which shows what is tested.
TEST(Golden, amp) {
  constexpr double kAllowed = 0x1p-9;
  const auto mixed = differences(bf16), single = differences(f32);
  EXPECT_EQ(mixed.size(), 2u * kSteps + 2u * 8u);
  for (const auto& [name, difference] : mixed) {
    EXPECT_LE(difference, kAllowed) << name;
    if (name.ends_with("/loss")) continue;
    EXPECT_GT(single.at(name), kAllowed) << name;
  }
}

}  // namespace
}  // namespace weft::testing
