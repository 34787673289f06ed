// Captured steps against steps that run as they are.
#include "train/step_graph.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "nn/activation.h"
#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/loss.h"
#include "nn/norm.h"
#include "nn/transformer.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "tensor/random.h"
#include "tests/on_device.h"

namespace weft::train {
namespace {

/// All that changes from step to step: dropout's mask, running statistics, corrections of Adam, the learning rate.
struct Net : nn::Module {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", {.in = 1, .out = 4, .kernel = 3});
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", {.channels = 4});
  nn::Dropout& dropout = add<nn::Dropout>("dropout", {.p = 0.25});
  nn::Linear& fc = add<nn::Linear>("fc", {.in = 64, .out = 5});
  Tensor forward(const Tensor& x) override { return fc(dropout(relu(norm(conv(x)))).flatten(1)); }
};

/// Dropout of an attention's probabilities, which its backward draws again, and of what it adds.
struct TextNet : nn::Module {
  nn::TransformerEncoderLayer& layer =
      add<nn::TransformerEncoderLayer>("layer", {.width = 6, .heads = 2, .hidden = 8, .dropout = 0.25});
  nn::Linear& fc = add<nn::Linear>("fc", {.in = 36, .out = 5});
  Tensor forward(const Tensor& x) override { return fc(layer(x.squeeze(1)).flatten(1)); }
};

class StepGraphDevice : public OnDevice<testing::Test> {
 protected:
  struct Run {
    std::vector<double> losses;
    std::vector<Named> weights;
    int64_t replayed = 0;
    std::string hindrance;
  };

  /// `steps` steps; `batch_of(step)` samples each. Between steps memory comes and goes, as evaluation does it.
  template <class Model = Net>
  Run train(bool captured, int64_t steps, const std::function<int64_t(int64_t)>& batch_of, bool reads_back = false) {
    manual_seed(3);
    Model net;
    net.to(device);
    optim::AdamW adam(net.parameters(), {.lr = 0.02});
    optim::Scheduler schedule(adam, optim::schedule::one_cycle(0.02, {.steps = steps}));
    const auto gradients = [&](const data::Batch& batch) {
      adam.zero_grad();
      const Tensor loss = nn::cross_entropy(net(batch.x), batch.y);
      loss.backward();
      if (reads_back) {
        EXPECT_GT(loss.item(), 0);
      }
      return loss;
    };
    Run run;
    // Gradients are clipped; their norm is larger in most steps.
    StepGraph graph(
        device, adam, gradients, [&] { adam.step({.max_norm = 0.5}); }, captured ? "" : "runs as it is");
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t n = batch_of(step);
      const Tensor x = randn({n, 1, 6, 6}).to(device), y = randint(0, 5, {n}).to(device);
      run.losses.push_back(graph({x, y}).item());
      schedule.step();
      memory::release_cache(device);
      const Tensor other = full({1 << 14}, 1e30, device);
    }
    run.weights = net.state_dict();
    run.replayed = graph.replayed();
    run.hindrance = graph.hindrance();
    return run;
  }

  static void expect_equal(const Run& a, const Run& b) {
    EXPECT_EQ(a.losses, b.losses);
    ASSERT_EQ(a.weights.size(), b.weights.size());
    for (size_t i = 0; i < a.weights.size(); ++i)
      EXPECT_EQ(a.weights[i].value.to_vector<float>(), b.weights[i].value.to_vector<float>()) << a.weights[i].name;
  }
};

TEST_F(StepGraphDevice, ReplaysWhatAnEagerRunDoes) {
  const auto same = [](int64_t) { return 4; };
  const Run eager = train(false, 8, same), captured = train(true, 8, same);
  EXPECT_EQ(eager.replayed, 0);
  EXPECT_EQ(captured.hindrance, "");
  EXPECT_EQ(captured.replayed, 6);
  expect_equal(captured, eager);
}

TEST_F(StepGraphDevice, ReplaysAttentionWithDropout) {
  const auto same = [](int64_t) { return 4; };
  const Run eager = train<TextNet>(false, 8, same), captured = train<TextNet>(true, 8, same);
  EXPECT_EQ(captured.hindrance, "");
  EXPECT_EQ(captured.replayed, 6);
  expect_equal(captured, eager);
}

TEST_F(StepGraphDevice, AnotherBatchSizeRunsAsItIs) {
  const auto tail = [](int64_t step) { return step % 4 == 3 ? 3 : 4; };
  const Run eager = train(false, 9, tail), captured = train(true, 9, tail);
  EXPECT_EQ(captured.hindrance, "");
  EXPECT_EQ(captured.replayed, 5);
  expect_equal(captured, eager);
}

TEST_F(StepGraphDevice, AStepThatReadsBackFallsBackWithTheReason) {
  const auto same = [](int64_t) { return 4; };
  const Run eager = train(false, 5, same, true), captured = train(true, 5, same, true);
  EXPECT_EQ(captured.replayed, 0);
  EXPECT_NE(captured.hindrance.find("captur"), std::string::npos) << captured.hindrance;
  expect_equal(captured, eager);
}

TEST(StepGraph, TheCpuHasNone) {
  Net net;
  optim::AdamW adam(net.parameters(), {});
  StepGraph graph(
      cpu, adam,
      [&](const data::Batch& batch) {
        adam.zero_grad();
        const Tensor loss = nn::cross_entropy(net(batch.x), batch.y);
        loss.backward();
        return loss;
      },
      [&] { adam.step(); });
  EXPECT_EQ(graph.hindrance(), "the CPU has no graphs");
  EXPECT_GT(graph({randn({2, 1, 6, 6}), randint(0, 5, {2})}).item(), 0);
}

}  // namespace
}  // namespace weft::train
