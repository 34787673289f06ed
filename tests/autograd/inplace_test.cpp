// Writes in place: memory that overlaps, tensors that a gradient still needs, history after a write.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "autograd/autograd.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/index.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "tensor/view.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

using Doubles = std::vector<double>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Field case 1.
TEST(InPlace, ExpandedViewThrowsAndNothingIsWritten) {
  Tensor x = scalar(std::numbers::pi / 4);
  Tensor y = x.expand({3});
  const std::vector<std::pair<const char*, std::function<void()>>> writes = {
      {"mul_", [&] { y.mul_(2.0); }},       {"add_", [&] { y.add_(1.0); }},
      {"fill_", [&] { y.fill_(1); }},       {"copy_", [&] { y.copy_(ones({3})); }},
      {"sub_", [&] { y.sub_(ones({3})); }}, {"div_", [&] { y.div_(full({3}, 2)); }}};
  for (const auto& [op, write] : writes) {
    const std::string message = error_of(write);
    EXPECT_TRUE(contains(message, std::string("[") + op + "]") && contains(message, "[3]") &&
                contains(message, "strides [0]"))
        << message;
  }
  EXPECT_EQ(x.item(), static_cast<double>(static_cast<float>(std::numbers::pi / 4)));
  for (double v : cos(y).to_vector<double>()) EXPECT_NEAR(v, std::numbers::sqrt2 / 2, 1e-6);
  Tensor rows = ones({1, 3}).expand({2, 3});
  EXPECT_TRUE(contains(error_of([&] { rows.add_(1.0); }), "strides [0, 1]"));
  // One element, or a size of 1, overlaps nothing.
  Tensor single = ones({1}).expand({1, 1});
  single.add_(1.0);
  EXPECT_EQ(single.item(), 2);
}

// Field case 2: the source is read before anything is written, in both directions.
TEST(InPlace, PartialOverlapReadsTheSourceFirst) {
  for (int64_t n : {5, 100'000}) {
    auto base = [n] { return (arange(2 * n, f32) + 1).reshape({2, n}); };
    auto left = [n](const Tensor& x) { return raw::narrow(x, 1, 0, n - 1); };
    auto right = [n](const Tensor& x) { return raw::narrow(x, 1, 1, n - 1); };
    using Side = std::function<Tensor(const Tensor&)>;
    for (const auto& [to, from] : std::vector<std::pair<Side, Side>>{{right, left}, {left, right}}) {
      const std::vector<std::function<void(Tensor&, const Tensor&)>> writes = {
          [](Tensor& y, const Tensor& x) { y.copy_(x); }, [](Tensor& y, const Tensor& x) { y.add_(x); },
          [](Tensor& y, const Tensor& x) { y.sub_(x); }, [](Tensor& y, const Tensor& x) { y.mul_(x); },
          [](Tensor& y, const Tensor& x) { y.div_(x); }};
      for (const auto& write : writes) {
        const Tensor apart = base(), shared = base();
        Tensor wanted = to(apart), got = to(shared);
        write(wanted, raw::clone(from(apart)));
        write(got, from(shared));
        EXPECT_EQ(shared.to_vector<double>(), apart.to_vector<double>());
      }
    }
  }
  Tensor square_matrix = arange(9, f32).reshape({3, 3});
  square_matrix.add_(square_matrix.t());
  EXPECT_EQ(square_matrix.to_vector<double>(), (Doubles{0, 4, 8, 4, 8, 12, 8, 12, 16}));
}

TEST(InPlace, DamageToASavedTensorThrowsAndNamesTheOp) {
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&, const Tensor&)>>> ops = {
      {"mul", [](const Tensor& x, const Tensor& other) { return x * other; }},
      {"div", [](const Tensor& x, const Tensor& other) { return x / other; }},
      {"maximum", [](const Tensor& x, const Tensor& other) { return maximum(x, other); }}};
  for (const auto& [op, f] : ops) {
    Tensor x = ones({3}), other = full({3}, 2);
    x.requires_grad_();
    const Tensor loss = sum(f(x, other));
    other.add_(1.0);
    const std::string message = error_of([&] { loss.backward(); });
    EXPECT_TRUE(contains(message, std::string("[") + op + "]") && contains(message, "changed in place")) << message;
    EXPECT_FALSE(x.grad().defined());
  }
}

TEST(InPlace, DamageToASavedResultThrows) {
  for (const auto& [op, f] : std::vector<std::pair<const char*, Tensor (*)(const Tensor&)>>{
           {"exp", exp}, {"tanh", tanh}, {"sigmoid", sigmoid}, {"softmax", [](const Tensor& x) {
                                                                  return softmax(x);
                                                                }}}) {
    Tensor x = ones({3});
    x.requires_grad_();
    Tensor y = f(x);
    y.mul_(2.0);
    const std::string message = error_of([&] { sum(y).backward(); });
    EXPECT_TRUE(contains(message, std::string("[") + op + "]") && contains(message, "changed in place")) << message;
  }
}

TEST(InPlace, DamageThroughAViewIsSeen) {
  Tensor x = ones({4}), other = full({4}, 2);
  x.requires_grad_();
  const Tensor loss = sum(x * other);
  other.narrow(0, 1, 2).fill_(5);
  EXPECT_TRUE(contains(error_of([&] { loss.backward(); }), "[mul]"));
}

TEST(InPlace, WritesThatNoGradientNeedsAreFine) {
  Tensor x = ones({3});
  x.requires_grad_();
  Tensor y = x + 1;  // keeps nothing
  y.mul_(3.0);
  y.add_(x);
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{4, 4, 4}));
}

TEST(InPlace, HistoryFollowsTheWrite) {
  Tensor x = from<float>({1, 2}, {2}), factor = from<float>({3, 4}, {2});
  x.requires_grad_();
  factor.requires_grad_();
  Tensor y = x + 0;
  y.mul_(factor);
  y.sub_(x);
  y.div_(full({2}, 2));
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{1, 1.5}));
  EXPECT_EQ(factor.grad().to_vector<double>(), (Doubles{0.5, 1}));
  Tensor z = x * 2;
  z.copy_(factor.detach());  // what was there before is out of the graph
  x.set_grad({});
  sum(z).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 0}));
}

TEST(InPlace, LeavesAndTheirViewsAreProtected) {
  Tensor x = ones({3});
  x.requires_grad_();
  EXPECT_TRUE(contains(error_of([&] { x.add_(1.0); }), "[add_] a leaf that requires a gradient"));
  EXPECT_TRUE(
      contains(error_of([&] { x.narrow(0, 0, 2).add_(1.0); }), "[add_] a view of a tensor that requires a gradient"));
  EXPECT_EQ(x.to_vector<double>(), (Doubles{1, 1, 1}));
  const NoGrad no_grad;
  x.add_(1.0);
  EXPECT_EQ(x.to_vector<double>(), (Doubles{2, 2, 2}));
}

TEST(InPlace, ATensorWithItself) {
  Tensor x = from<double>({1, 2, 3}, {3});
  x.requires_grad_();
  Tensor y = x + 0;
  y.mul_(y);
  EXPECT_EQ(y.to_vector<double>(), (Doubles{1, 4, 9}));
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 4, 6}));
  x.set_grad({});
  Tensor z = x + 0;
  z.add_(z);
  z.sub_(z);
  z.add_(x);
  z.div_(z);
  sum(z).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 0, 0}));
}

// The tensor behind the view would have values that its history does not know of.
TEST(InPlace, TrackedValuesDoNotGoIntoAView) {
  Tensor weight = ones({2}), base = zeros({4});
  weight.requires_grad_();
  Tensor part = base.narrow(0, 1, 2);
  EXPECT_TRUE(contains(error_of([&] { part.copy_(weight); }), "[copy_] a view"));
  EXPECT_TRUE(contains(error_of([&] { part.add_(weight); }), "[add_] a view"));
  EXPECT_EQ(base.to_vector<double>(), (Doubles{0, 0, 0, 0}));
  part.copy_(weight.detach());
  const NoGrad no_grad;
  part.add_(weight);
  EXPECT_EQ(base.to_vector<double>(), (Doubles{0, 2, 2, 0}));
}

TEST(InPlace, AResultInATemporarysMemoryIsNoView) {
  Tensor x = ones({4});
  x.requires_grad_();
  Tensor y = masked_fill(x + 1, from<bool>({true, false, false, false}, {4}), 0);
  y.mul_(3.0);
  Tensor z = dropout(x + 1, 0.5, true);
  z.add_(1.0);
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 3, 3, 3}));
}

TEST(InPlace, ShapesAndDtypesAreChecked) {
  Tensor x = ones({2});
  EXPECT_TRUE(contains(error_of([&] { x.add_(ones({3, 2})); }), "[add_] [3, 2] does not fit into [2]"));
  EXPECT_TRUE(contains(error_of([&] { x.add_(ones({2}, f64)); }), "[add_] the operands have dtypes f32 and f64"));
}

// Field case 22.
TEST(Backward, CreateGraphIsRefused) {
  Tensor x = ones({2});
  x.requires_grad_();
  const std::string message = error_of([&] { sum(x * x).backward({.gradient = {}, .create_graph = true}); });
  EXPECT_TRUE(contains(message, "[backward] second derivatives are not supported")) << message;
}

}  // namespace
}  // namespace weft
