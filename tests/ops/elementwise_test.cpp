// Elementwise ops at the edges.
#include "autograd/ops/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/reduce.h"
#include "tensor/view.h"

namespace weft {
namespace {

using Doubles = std::vector<double>;

// Field case 9: where(x > 2, log2 x, 2 x). The gradient is selected, not multiplied by 0, and a gradient of 0 stays 0
// through log's infinite slope.
TEST(Where, BranchNotTakenHasNoGradient) {
  Tensor x = from<float>({0, 2, 3}, {3}), infinite = full({3}, std::numeric_limits<float>::quiet_NaN());
  x.requires_grad_();
  infinite.requires_grad_();
  const Tensor condition = gt(x.detach(), 2.0);
  sum(where(condition, x * 2, infinite * infinite)).backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{0, 0, 2}));

  x.set_grad({});
  sum(where(condition, log(x) * (1 / std::log(2.0)), x * 2)).backward();
  const Doubles g = x.grad().to_vector<double>();
  EXPECT_EQ(g[0], 2);
  EXPECT_EQ(g[1], 2);
  EXPECT_NEAR(g[2], 0.4809, 1e-4);
}

// The same kind of fault in every op whose slope can be infinite: the branch is not taken, so its gradient is 0.
TEST(Where, InfiniteSlopeOfABranchNotTakenIsNoGradient) {
  const std::vector<std::pair<double, Tensor (*)(const Tensor&)>> cases{
      {0, log},
      {0, sqrt},
      {0, rsqrt},
      {1e4, exp},
      {0, [](const Tensor& x) { return 1.0 / x; }},
      {0, [](const Tensor& x) { return pow(x, 0.5); }},
      {0, [](const Tensor& x) { return pow(x, full({1}, 0.5)); }},
      {0, [](const Tensor& x) { return x * (1.0 / x.detach()); }},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    Tensor x = full({1}, cases[i].first);
    x.requires_grad_();
    where(zeros({1}, boolean), cases[i].second(x), x * 3).backward();
    EXPECT_EQ(x.grad().item(), 3) << "case " << i;
  }
}

TEST(Where, UpstreamInfinityStaysOnItsSide) {
  Tensor a = ones({2}), b = ones({2});
  a.requires_grad_();
  b.requires_grad_();
  const Tensor dy = full({2}, std::numeric_limits<float>::infinity());
  where(from<uint8_t>({1, 0}, {2}).to(DType::boolean), a, b).backward({.gradient = dy});
  EXPECT_EQ(a.grad().to_vector<double>()[1], 0);
  EXPECT_EQ(b.grad().to_vector<double>()[0], 0);
}

TEST(Sine, HoldsFarFromZero) {
  const Doubles x{0, 1e4, 3e7, -2.5e12, std::nan("")};
  const Tensor t = from(std::span<const double>(x), {5}).to(f32);
  const Doubles exact = t.to_vector<double>();
  for (const auto& [op, reference] : {std::pair{&sin, static_cast<double (*)(double)>(std::sin)},
                                      std::pair{&cos, static_cast<double (*)(double)>(std::cos)}}) {
    for (int64_t n : {2, 5}) {  // without and with large angles
      const Doubles y = op(t.narrow(0, 0, n)).to_vector<double>();
      for (size_t i = 0; i < static_cast<size_t>(std::min<int64_t>(n, 4)); ++i)
        EXPECT_NEAR(y[i], reference(exact[i]), 1e-6) << exact[i];
      EXPECT_TRUE(n < 5 || std::isnan(y.back()));
    }
  }
}

// Field case 6, the elementwise pair.
TEST(Maximum, TiesShareTheGradient) {
  for (auto* op : {maximum, minimum}) {
    Tensor a = from<float>({1, 2, 3}, {3}), b = from<float>({1, 3, 3}, {3});
    a.requires_grad_();
    b.requires_grad_();
    sum(op(a, b)).backward();
    const Doubles da = a.grad().to_vector<double>(), db = b.grad().to_vector<double>();
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(da[i] + db[i], 1);
  }
}

// Field case 5, the elementwise pair.
TEST(Maximum, NanInEitherOperandWins) {
  const Tensor a = from<float>({std::nanf(""), 1}, {2}), b = from<float>({1, std::nanf("")}, {2});
  for (auto* op : {maximum, minimum})
    for (double v : op(a, b).to_vector<double>()) EXPECT_TRUE(std::isnan(v));
}

}  // namespace
}  // namespace weft
