// The tape and the engine.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/index.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/random.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

Tensor leaf(std::initializer_list<double> values) {
  Tensor x = from(values, {static_cast<int64_t>(values.size())});
  return x.requires_grad_();
}

using Values = std::vector<double>;

TEST(Engine, MillionNodesRunAndAreFreed) {
  Tensor x = ones({1});
  x.requires_grad_();
  const int64_t before = memory::statistics().live;
  {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y + 1;
    y.backward();
    EXPECT_EQ(x.grad().item(), 1);
    y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y * 1;  // freed without a backward
  }
  x.set_grad({});
  EXPECT_EQ(memory::statistics().live, before);
}

TEST(Engine, DiamondSumsBothWays) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = x * x, z = exp(x);
  sum(y * z + y).backward();
  for (size_t i = 0; i < 3; ++i) {
    const double v = static_cast<double>(i) + 1;
    EXPECT_NEAR(x.grad().to_vector<double>()[i], 2 * v * std::exp(v) + v * v * std::exp(v) + 2 * v, 1e-12);
  }
}

TEST(Engine, GradientsAccumulateUntilDropped) {
  Tensor x = leaf({1, 2});
  sum(x * 3).backward();
  sum(x * 4).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{7, 7}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().defined());
}

TEST(Engine, AccumulatesIntoTheSameMemory) {
  Tensor x = leaf({1, 2});
  x.set_grad(zeros({2}, f64));
  const Tensor bucket = x.grad();
  sum(x * 3).backward();
  EXPECT_EQ(bucket.to_vector<double>(), (Values{3, 3}));
}

TEST(Engine, SecondBackwardNeedsRetainGraph) {
  const Tensor x = leaf({2});
  const Tensor y = sum(x * x);
  y.backward({.retain_graph = true});
  y.backward();
  EXPECT_EQ(x.grad().item(), 8);
  EXPECT_ERROR(y.backward(),
               "[sum] backward came here a second time, but what the rule needs was freed; pass retain_graph");
}

TEST(Engine, SecondDerivativesAreRefused) {
  const Tensor y = sum(square(leaf({2})));
  EXPECT_ERROR(y.backward({.create_graph = true}), "[backward] second derivatives are not supported");
}

TEST(Engine, WantsAGradientForMoreThanOneElement) {
  const Tensor y = leaf({1, 2}) * 2;
  EXPECT_ERROR(y.backward(), "a tensor of shape [2] needs the gradient to start from");
  y.backward({.gradient = from({1.0, 10.0}, {2})});
}

TEST(Engine, TensorsWithoutHistoryAreRefused) {
  EXPECT_ERROR(ones({1}).backward(), "the tensor has no history");
  const Tensor x = leaf({1});
  const NoGrad no_grad;
  EXPECT_ERROR((x * 2).backward(), "the tensor has no history");
}

TEST(Engine, RuleOfTheWrongShapeIsNamed) {
  const Tensor x = leaf({1, 2});
  const Tensor y = record("odd", {x}, x.detach() * 2, [](const Tensor&) -> Grads { return {ones({3}, f64)}; });
  EXPECT_ERROR(sum(y).backward(), "[odd] the gradient rule gave f64 [3] for input 0, which is f64 [2]");
}

TEST(Engine, RuleWithTooFewGradientsIsNamed) {
  const Tensor x = leaf({1}), y = leaf({2});
  const Tensor z = record("few", {x, y}, x.detach() * 1, [](const Tensor& dz) -> Grads { return {dz}; });
  EXPECT_ERROR(z.backward(), "[few] the gradient rule gave 1 gradients for 2 inputs");
}

TEST(Engine, AFailedPassLeavesNoGradientsBehind) {
  const Tensor x = leaf({1, 2});
  bool fails = true;
  const Tensor y = record("moody", {x}, x.detach() * 2, [&fails](const Tensor& dy) -> Grads {
    if (fails) throw Error("not today");
    return {dy * 2};
  });
  const Tensor z = sum(y + x);
  EXPECT_THROW(z.backward({.retain_graph = true}), Error);
  fails = false;
  const Tensor again = sum(y + x);
  again.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{3, 3}));
}

TEST(Engine, SeveralRoots) {
  const Tensor x = leaf({3});
  const Tensor y = x * 2;
  backward({y, y * y, x}, {Tensor(), from({10.0}, {1}), Tensor()});
  EXPECT_EQ(x.grad().item(), 2 + 10 * 2 * 6 * 2 + 1);
}

TEST(Engine, SeveralOutputsOfOneNode) {
  const Tensor x = leaf({3});
  const Tensor a = x.detach() * 2, b = x.detach() * 5, unused = x.detach() * 7;
  record_many("three", {x}, {a, b, unused}, [](const std::vector<Tensor>& d) -> Grads {
    EXPECT_FALSE(d[2].defined());
    return {d[0] * 2 + d[1] * 5};
  });
  sum(a * b).backward();
  EXPECT_EQ(x.grad().item(), 2 * 15 + 5 * 6);
}

TEST(Engine, HooksSeeAndReplaceTheGradient) {
  const Tensor x = leaf({1});
  const Tensor y = x * 2;
  double seen = 0;
  register_hook(y, [&](const Tensor& dy) {
    seen = dy.item();
    return dy * 10;
  });
  (y * 3).backward();
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(x.grad().item(), 60);
}

TEST(Engine, AHookMayNotChangeTheShape) {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2;
  register_hook(y, [](const Tensor&) { return ones({3}, f64); });
  EXPECT_ERROR(sum(y).backward(), "[hook] the gradient of affine is f64 [2], the hook gave f64 [3]");
}

TEST(Engine, AHookOfAnOutputThatWasNotUsedIsNotCalled) {
  const Tensor x = leaf({3});
  const Tensor a = x.detach() * 2, b = x.detach() * 5;
  record_many("two", {x}, {a, b}, [](const std::vector<Tensor>& d) -> Grads { return {d[1] * 5}; });
  int calls = 0;
  register_hook(a, [&](const Tensor& dy) {
    ++calls;
    return dy;
  });
  sum(b).backward();
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(x.grad().item(), 5);
}

TEST(Engine, TheGradientToStartFromMustFit) {
  const Tensor y = leaf({1, 2}) * 2;
  EXPECT_ERROR(backward({y}, {ones({3}, f64)}),
               "[backward] the tensor is f64 [2] on cpu, the gradient to start from f64 [3]");
  EXPECT_ERROR(backward({y}, {ones({2})}),
               "[backward] the tensor is f64 [2] on cpu, the gradient to start from f32 [2]");
}

TEST(Engine, AGradientThatOverlapsItselfIsAddedTo) {
  Tensor x = leaf({1, 2});
  x.set_grad(ones({1}, f64).expand({2}));
  sum(x * from({3.0, 5.0}, {2})).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{4, 6}));
}

TEST(Engine, AGradientKeepsNoLargerBlockAlive) {
  Tensor small = leaf({1, 2}), large = ones({1 << 16}, f64);
  sum(cat({small, large}) * 2).backward();
  EXPECT_EQ(small.grad().storage()->bytes(), small.bytes());
}

TEST(Engine, ReadyHooksRunAsSoonAsALeafIsCompleteAndCallbacksAtTheEnd) {
  const Tensor first = leaf({1}), second = leaf({1});
  std::vector<std::string> events;
  register_ready_hook(first, [&](Tensor& grad) { events.push_back(fmt::format("first {}", grad.item())); });
  register_ready_hook(second, [&](Tensor& grad) { events.push_back(fmt::format("second {}", grad.item())); });
  const Tensor early = first * 2;
  const Tensor h = record("early layer", {early}, early.detach(), [&](const Tensor& dy) -> Grads {
    events.emplace_back("early layer's backward");
    after_backward([&] { events.emplace_back("end"); });
    return {dy};
  });
  (h * second).backward();
  EXPECT_EQ(events, (std::vector<std::string>{"second 2", "early layer's backward", "first 2", "end"}));
  EXPECT_ERROR(after_backward([] {}), "no backward pass is running");
}

TEST(Engine, DetachStopsTheGradientAndSharesMemory) {
  const Tensor x = leaf({3});
  sum(x * x.detach()).backward();
  EXPECT_EQ(x.grad().item(), 3);
  EXPECT_EQ(x.detach().storage(), x.storage());
}

TEST(Engine, OnlyFloatingLeavesRequireGradients) {
  Tensor labels = arange(3);
  EXPECT_ERROR(labels.requires_grad_(), "only floating tensors have gradients, this one is i64");
  Tensor y = leaf({1}) * 2;
  EXPECT_ERROR(y.requires_grad_(), "the tensor is the result of affine, not a leaf");
}

TEST(Engine, SameBitsEveryTime) {
  auto run = [] {
    manual_seed(3);
    Tensor x = randn({50, 40}), w = randn({40});
    x.requires_grad_();
    w.requires_grad_();
    sum(sigmoid(x * w) * x + exp(x * 0.1) * w).backward();
    return std::pair(x.grad().to_vector<float>(), w.grad().to_vector<float>());
  };
  EXPECT_EQ(run(), run());
}

TEST(Anomaly, NamesTheOpAndTheModuleOfABadValue) {
  const Scope scope(Scope::intern("Net.head"));
  const Tensor x = leaf({-1.0});
  const AnomalyMode anomaly;
  EXPECT_ERROR(log(x), "[log] Net.head: anomaly: value of shape [1] contains NaN");
}

TEST(Anomaly, NamesTheOpAndTheModuleOfABadGradient) {
  const Tensor x = leaf({0.0});
  Tensor y;
  {
    const Scope scope(Scope::intern("Net.norm"));
    y = sqrt(x);
  }
  const AnomalyMode anomaly;
  EXPECT_ERROR(y.backward(), "[sqrt] Net.norm: anomaly: gradient of shape [1] contains infinity");
}

TEST(Gradcheck, AcceptsRightAndRejectsWrongRules) {
  EXPECT_TRUE(gradcheck(tanh, {randn({4, 3}, f64)}));
  EXPECT_TRUE(gradcheck(relu, {randn({4, 3}, f64) + 5}));
  auto wrong_factor = [](const std::vector<Tensor>& in) {
    return record("wrong", {in[0]}, in[0].detach() * 2, [](const Tensor& dy) -> Grads { return {dy * 2.001}; });
  };
  const GradcheckResult factor = gradcheck(wrong_factor, {randn({4, 3}, f64)});
  EXPECT_FALSE(factor);
  EXPECT_NE(factor.message.find("input 0, element"), std::string::npos);
  auto one_element = [](const std::vector<Tensor>& in) {  // right but for a single element
    return record("wrong", {in[0]}, in[0].detach() * 2, [](const Tensor& dy) -> Grads {
      Tensor dx = dy * 2;
      dx.select(0, 3).fill_(0);
      return {dx};
    });
  };
  EXPECT_FALSE(gradcheck(one_element, {randn({5}, f64)}));
  auto missing = [](const std::vector<Tensor>& in) { return in[0].detach() * 2; };
  EXPECT_FALSE(gradcheck(missing, {randn({5}, f64)}));
  auto not_finite = [](const std::vector<Tensor>& in) {
    return record("wrong", {in[0]}, in[0].detach() * 2,
                  [](const Tensor& dy) -> Grads { return {dy * std::numeric_limits<double>::quiet_NaN()}; });
  };
  EXPECT_FALSE(gradcheck(not_finite, {randn({5}, f64)}));
}

}  // namespace
}  // namespace weft
