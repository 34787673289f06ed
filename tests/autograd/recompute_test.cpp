// Activation checkpointing: the same gradients and random numbers, less memory.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/reduce.h"
#include "tensor/memory.h"
#include "tensor/random.h"

namespace weft {
namespace {

using Floats = std::vector<float>;

struct Outcome {
  Floats value, input_grad, weight_grad;
  uint64_t draws;  // where the generator stood at the end
};

/// Two blocks with dropout, each recomputed or not.
Outcome run(bool recomputed, bool input_wants_gradient = true) {
  manual_seed(42);
  Tensor x = randn({64}), weight = randn({64});
  if (input_wants_gradient) x.requires_grad_();
  weight.requires_grad_();
  auto block = [&](const Tensor& h) { return dropout(tanh(dropout(h, 0.3, true) * weight), 0.5, true); };
  auto call = [&](const Tensor& h) { return recomputed ? recompute(block, h) : block(h); };
  const Tensor y = dropout(call(call(x)), 0.1, true);
  sum(square(y)).backward();
  return {y.to_vector<float>(), input_wants_gradient ? x.grad().to_vector<float>() : Floats(),
          weight.grad().to_vector<float>(), default_generator().state().offset};
}

TEST(Recompute, SameValuesGradientsAndDraws) {
  const Outcome plain = run(false), again = run(true);
  EXPECT_EQ(plain.value, again.value);
  EXPECT_EQ(plain.input_grad, again.input_grad);
  EXPECT_EQ(plain.weight_grad, again.weight_grad);
  EXPECT_EQ(plain.draws, again.draws) << "the second forward moved the generator";
}

TEST(Recompute, ParametersInsideGetGradientsWithoutTheInput) {
  const Outcome plain = run(false, false), again = run(true, false);
  EXPECT_EQ(plain.weight_grad, again.weight_grad);
}

// The inner backward meets a leaf whose gradient the outer one is still gathering.
TEST(Recompute, AWeightUsedBeforeInsideAndAfter) {
  auto gradient = [](bool recomputed, int64_t times) {
    Tensor weight = full({3}, 1.5), x = ones({3});
    weight.requires_grad_();
    x.requires_grad_();
    const auto block = [&](const Tensor& h) { return h * weight; };
    Tensor y = block(x);
    for (int64_t i = 0; i < times; ++i) y = recomputed ? recompute(block, y) : block(y);
    sum(block(y) + weight).backward();
    return weight.grad().to_vector<float>();
  };
  for (int64_t times : {1, 3}) EXPECT_EQ(gradient(true, times), gradient(false, times)) << times;
}

TEST(Recompute, ReadyHooksRunOnceThoughTheWeightIsSharedWithTheOuterGraph) {
  Tensor weight = full({3}, 1.5), x = ones({3});
  weight.requires_grad_();
  int calls = 0;
  register_ready_hook(weight, [&](Tensor&) { ++calls; });
  const auto block = [&](const Tensor& h) { return h * weight; };
  sum(block(recompute(block, block(x)))).backward();
  EXPECT_GE(calls, 1);
  EXPECT_EQ(weight.grad().to_vector<float>(), (Floats{6.75, 6.75, 6.75}));
}

TEST(Recompute, ResultOfAnOuterTensorStaysThatTensors) {
  Tensor weight = ones({3}), x = ones({3});
  weight.requires_grad_();
  const Tensor y = recompute([&](const Tensor&) { return weight; }, x);
  EXPECT_TRUE(weight.is_leaf());
  sum(y).backward();
  EXPECT_EQ(weight.grad().to_vector<float>(), (Floats{1, 1, 1}));
}

TEST(Recompute, IntegerInput) {
  Tensor weight = randn({5, 2});
  weight.requires_grad_();
  const Tensor ids = from<int64_t>({1, 4, 1}, {3});
  sum(recompute([&](const Tensor& i) { return embedding(weight, i); }, ids)).backward();
  EXPECT_EQ(weight.grad().to_vector<float>(), (Floats{0, 0, 2, 2, 0, 0, 0, 0, 1, 1}));
}

TEST(Recompute, ReplayIsToldAndNestedOnesWork) {
  int first = 0, second = 0;
  auto inner = [&](const Tensor& h) {
    (replaying() ? second : first) += 1;
    return dropout(square(h), 0.5, true);
  };
  auto outer = [&](const Tensor& h) { return recompute(inner, recompute(inner, h)); };
  auto gradient = [&](auto&& f) {
    manual_seed(7);
    Tensor x = full({32}, 1.5);
    x.requires_grad_();
    sum(f(x)).backward();
    return x.grad().to_vector<float>();
  };
  const Floats plain = gradient([&](const Tensor& h) { return inner(inner(h)); });
  first = second = 0;
  EXPECT_EQ(gradient([&](const Tensor& h) { return recompute(outer, h); }), plain);
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 4);  // once when the outer one replays, once more for each inner backward
  EXPECT_FALSE(replaying());
}

TEST(Recompute, AThrowDuringReplayLeavesTheGeneratorWhereItWas) {
  Tensor x = ones({4});
  x.requires_grad_();
  manual_seed(1);
  const Tensor y = recompute(
      [](const Tensor& h) {
        Tensor z = dropout(h, 0.5, true);
        WEFT_CHECK(!replaying(), "test", "the second forward fails");
        return z;
      },
      x);
  dropout(x, 0.5, true);
  const uint64_t before = default_generator().state().offset;
  EXPECT_THROW(sum(y).backward(), Error);
  EXPECT_EQ(default_generator().state().offset, before);
  EXPECT_FALSE(replaying());
}

TEST(Recompute, WithoutRecordingItIsACall) {
  const NoGrad no_grad;
  const Tensor y = recompute([](const Tensor& h) { return h * 2; }, ones({2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 2}));
}

/// Peak bytes of a chain of blocks, forward and backward.
int64_t peak(bool recomputed) {
  Tensor x = ones({1 << 14});
  x.requires_grad_();
  auto block = [](const Tensor& h) {
    Tensor y = h;
    for (int i = 0; i < 10; ++i) y = sin(y);
    return y;
  };
  memory::reset_peak();
  const int64_t before = memory::statistics().live;
  Tensor y = x;
  for (int i = 0; i < 10; ++i) y = recomputed ? recompute(block, y) : block(y);
  sum(y).backward();
  return memory::statistics().peak - before;
}

TEST(Recompute, TakesLessMemory) {
  // 100 activations of 64 KiB, against 10 kept and 10 recomputed at a time.
  EXPECT_GT(peak(false), 100 << 16);
  EXPECT_LT(peak(true), 30 << 16);
}

}  // namespace
}  // namespace weft
