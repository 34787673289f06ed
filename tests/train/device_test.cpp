// The MNIST net's training on a device against the CPU's.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "data/dataset.h"
#include "models/mnist.h"
#include "nn/loss.h"
#include "optim/adam.h"
#include "tensor/random.h"
#include "tests/expect_error.h"
#include "tests/on_device.h"
#include "train/evaluate.h"
#include "train/loss_mean.h"

namespace weft::train {
namespace {

constexpr int64_t kSteps = 20, kBatch = 4;

struct Trained {
  std::vector<double> losses;
  double mean = 0;
  std::vector<Named> weights;
};

Trained train_on(Device device) {
  manual_seed(5);
  models::MnistNet net;
  net.to(device);
  optim::AdamW adam(net.parameters(), {.lr = 1e-3});
  LossMean mean(device);
  Trained run;
  for (int64_t step = 0; step < kSteps; ++step) {
    const Tensor x = randn({kBatch, 1, 28, 28}).to(device), y = randint(0, 10, {kBatch}).to(device);
    adam.zero_grad();
    const Tensor loss = nn::cross_entropy(net(x), y);
    loss.backward();
    adam.step();
    mean.add(loss, kBatch);
    run.losses.push_back(loss.item());
  }
  run.mean = mean.read();
  run.weights = net.state_dict();
  return run;
}

class MnistNetDevice : public OnDevice<testing::Test> {};

// Both sum in f32 in different orders. Adam divides by the root of what it has seen, so a gradient near 0 may move a
// weight by up to lr a step either way: weights are held to a tenth of the 20 steps' reach, their mean to a thousandth.
TEST_F(MnistNetDevice, TwentyStepsAreTheCpus) {
  const Trained there = train_on(device), here = train_on(cpu);
  EXPECT_NEAR(there.mean, here.mean, 1e-4 * here.mean);
  for (size_t i = 0; i < here.losses.size(); ++i)
    EXPECT_NEAR(there.losses[i], here.losses[i], 1e-3 * here.losses[i]) << "step " << i;
  for (size_t i = 0; i < here.weights.size(); ++i) {
    const auto a = there.weights[i].value.to_vector<double>(), b = here.weights[i].value.to_vector<double>();
    double most = 0, sum = 0;
    for (size_t k = 0; k < a.size(); ++k) {
      most = std::fmax(most, std::fabs(a[k] - b[k]));
      sum += std::fabs(a[k] - b[k]);
    }
    EXPECT_LE(most, 2e-3) << here.weights[i].name;
    EXPECT_LE(sum / static_cast<double>(a.size()), 2e-5) << here.weights[i].name;
    RecordProperty(here.weights[i].name, std::to_string(most));
  }
}

TEST_F(MnistNetDevice, EvaluationReportsAWrongLabel) {
  models::MnistNet net;
  net.to(device);
  const data::TensorDataset set(randn({5, 1, 28, 28}), full({5}, 10, i64));
  EXPECT_ERROR(evaluate(net, classification, set, device), "label 10 at position 0 is outside of the classes [0, 10)");
}

}  // namespace
}  // namespace weft::train
