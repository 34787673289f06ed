// What must hold of training, whatever the model: memory stays flat, dtypes can change, threads may work at once.
#include <gtest/gtest.h>

#include <thread>

#include "tests/expect_error.h"
#include "weft.h"

namespace weft {
namespace {

/// Everything that keeps state or draws numbers.
struct Net : nn::Module {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", {.in = 1, .out = 4, .kernel = 3});
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", {.channels = 4});
  nn::Dropout& drop = add<nn::Dropout>("drop", {.p = 0.1});
  nn::Linear& fc = add<nn::Linear>("fc", {.in = 36, .out = 3});

  Tensor forward(const Tensor& x) override {
    return fc(drop(max_pool2d(relu(norm(conv(x))), {.kernel = 2}).flatten(1)));
  }
};

double train_step(nn::Module& net, optim::Optimizer& optimizer, const Tensor& x, const Tensor& y) {
  optimizer.zero_grad();
  const Tensor loss = nn::cross_entropy(net(x), y);
  loss.backward();
  optim::clip_grad_norm(net.parameters(), 1);
  optimizer.step();
  return loss.item();
}

TEST(Steps, MemoryStaysFlat) {
  manual_seed(1);
  Net net;
  optim::AdamW adam(net.parameters(), {.lr = 1e-3});
  const Tensor x = randn({8, 1, 8, 8}), y = randint(0, 3, {8});
  for (int i = 0; i < 2; ++i) train_step(net, adam, x, y);  // state and gradients are there
  const memory::Statistics before = memory::statistics();
  memory::reset_peak();
  train_step(net, adam, x, y);
  const int64_t peak = memory::statistics().peak;
  for (int i = 0; i < 20; ++i) {
    train_step(net, adam, x, y);
    const memory::Statistics now = memory::statistics();
    ASSERT_EQ(now.live, before.live) << "step " << i;
    ASSERT_EQ(now.peak, peak) << "step " << i;
  }
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_EQ(memory::statistics().system, before.system) << "every block should come from the cache";
#endif
}

TEST(Steps, AModelTrainsOnAfterAChangeOfDtype) {
  for (DType wanted : {f64, bf16, f16}) {
    SCOPED_TRACE(name(wanted));
    manual_seed(1);
    Net net;
    optim::AdamW adam(net.parameters(), {.lr = 1e-2});
    const Tensor x = randn({8, 1, 8, 8}), y = randint(0, 3, {8});
    const double first = train_step(net, adam, x, y);
    net.to(wanted);
    double last = 0;
    for (int i = 0; i < 30; ++i) last = train_step(net, adam, x.to(wanted), y);
    EXPECT_LT(last, 0.7 * first);
    net.to(f32);
    EXPECT_LT(train_step(net, adam, x, y), first);
  }
}

TEST(Steps, AConversionWhileAGraphIsAliveIsAnErrorNotAWrongGradient) {
  nn::Linear fc({.in = 2, .out = 2});
  const Tensor loss = sum(fc(ones({1, 2})));
  fc.to(f64);
  EXPECT_ERROR(loss.backward(), "the gradient rule gave f32 [2, 2] for input 1, which is f64");
}

TEST(Steps, AStepBetweenForwardAndBackwardIsAnError) {
  nn::Linear fc({.in = 2, .out = 2});
  optim::SGD sgd(fc.parameters(), {.lr = 0.1});
  Tensor x = ones({1, 2});
  x.requires_grad_();
  sum(fc(x)).backward();
  const Tensor loss = sum(fc(x)), other = sum(fc(x));
  sgd.step();
  EXPECT_ERROR(loss.backward(), "[linear]");
  fc.load_state_dict(fc.state_dict());
  EXPECT_ERROR(other.backward(), "changed in place");
}

// More shapes than the cache of primitives holds, from several threads at once.
TEST(Steps, ThreadsWithManyShapes) {
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int64_t t = 0; t < 3; ++t)
    threads.emplace_back([t, &wrong] {
      const SingleThreaded alone;
      for (int64_t i = 1; i <= 500; ++i) {
        const int64_t n = 1 + i % 97, k = 1 + 3 * t + i / 97;
        const Tensor y = matmul(ones({n, k}), ones({k, 2}));
        if (sum(y).item() != static_cast<double>(2 * n * k)) ++wrong;
      }
    });
  threads.clear();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace weft
