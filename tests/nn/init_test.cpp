// Initialisers against the moments and bounds of their distributions. Draws are seeded, so the tests are deterministic;
// bounds are five standard errors of 40,000 draws.
#include "nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tensor/random.h"

namespace weft {
namespace {

namespace init = nn::init;

struct Moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

Moments moments(const Tensor& x) {
  const std::vector<double> v = x.to_vector<double>();
  Moments m{.low = *std::min_element(v.begin(), v.end()), .high = *std::max_element(v.begin(), v.end())};
  for (double a : v) m.mean += a / static_cast<double>(v.size());
  for (double a : v) m.deviation += (a - m.mean) * (a - m.mean) / static_cast<double>(v.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

Tensor weight() {
  manual_seed(11);
  return empty({200, 20, 10});  // fan in 200, fan out 2000
}

void expect_uniform(const Tensor& x, double bound) {
  const Moments m = moments(x);
  const double deviation = bound / std::sqrt(3.0), n = std::sqrt(static_cast<double>(x.numel()));
  EXPECT_NEAR(m.mean, 0, 5 * deviation / n);
  EXPECT_NEAR(m.deviation, deviation, 5 * 0.45 * deviation / n);  // the fourth moment of a uniform gives 0.45
  EXPECT_LE(std::max(-m.low, m.high), bound * (1 + 1e-6));
  EXPECT_GE(std::min(-m.low, m.high), bound * 0.999);
}

void expect_normal(const Tensor& x, double mean, double deviation) {
  const Moments m = moments(x);
  const double n = std::sqrt(static_cast<double>(x.numel()));
  EXPECT_NEAR(m.mean, mean, 5 * deviation / n);
  EXPECT_NEAR(m.deviation, deviation, 5 * 0.71 * deviation / n);
  EXPECT_GT(m.high - mean, 3.3 * deviation);  // it has tails
}

TEST(Init, FansAndGains) {
  EXPECT_EQ(init::fans(weight()).in, 200);
  EXPECT_EQ(init::fans(weight()).out, 2000);
  EXPECT_THROW(init::fans(empty({5})), Error);
  EXPECT_DOUBLE_EQ(init::gain(init::Nonlinearity::relu), std::sqrt(2.0));
  EXPECT_DOUBLE_EQ(init::gain(init::Nonlinearity::leaky_relu, 1), 1);
  EXPECT_DOUBLE_EQ(init::gain(init::Nonlinearity::tanh), 5.0 / 3);
}

TEST(Init, Uniform) {
  Tensor w = weight();
  init::uniform(w, -0.5, 0.5);
  expect_uniform(w, 0.5);
  EXPECT_THROW(init::uniform(w, 1, 0), Error);
}

TEST(Init, Normal) {
  Tensor w = weight();
  init::normal(w, 3, 0.5);
  expect_normal(w, 3, 0.5);
}

TEST(Init, Xavier) {
  Tensor w = weight();
  init::xavier_uniform(w, 2);
  expect_uniform(w, 2 * std::sqrt(6.0 / 2200));
  init::xavier_normal(w);
  expect_normal(w, 0, std::sqrt(2.0 / 2200));
}

TEST(Init, Kaiming) {
  Tensor w = weight();
  init::kaiming_uniform(w);
  expect_uniform(w, std::sqrt(6.0 / 200));
  init::kaiming_normal(w, {.fan = init::Fan::out});
  expect_normal(w, 0, std::sqrt(2.0 / 2000));
  init::kaiming_normal(w, {.nonlinearity = init::Nonlinearity::linear});
  expect_normal(w, 0, std::sqrt(1.0 / 200));
}

TEST(Init, TruncatedNormal) {
  Tensor w = weight();
  init::truncated_normal(w, 0, 1, -2, 2);
  Moments m = moments(w);
  EXPECT_NEAR(m.mean, 0, 5 * 0.88 / 200);
  EXPECT_NEAR(m.deviation, 0.879626, 0.01);  // √(1 - 4 φ(2) / (2 Φ(2) - 1))
  EXPECT_GE(m.low, -2);
  EXPECT_LE(m.high, 2);
  EXPECT_GT(m.high, 1.98);
  // One tail alone: mean φ(3) / (1 - Φ(3)), where 1 - uniform would have lost the digits.
  for (const double sign : {1.0, -1.0}) {
    init::truncated_normal(w, 0, 1, sign > 0 ? 3 : -INFINITY, sign > 0 ? INFINITY : -3);
    EXPECT_NEAR(moments(w).mean, sign * 3.28310, 0.01);
    EXPECT_GE(sign > 0 ? moments(w).low : -moments(w).high, 3);
  }
  init::truncated_normal(w, 0, 1, 9, 10);
  EXPECT_NEAR(moments(w).mean, 9.1085, 0.005);
}

TEST(Init, OrthogonalRowsOrColumns) {
  manual_seed(3);
  for (const Shape& sizes : {Shape{20, 50}, Shape{50, 20}, Shape{16, 4, 3, 3}, Shape{30, 30}}) {
    Tensor w = empty(sizes, f64);
    init::orthogonal(w, 2);
    const std::vector<double> v = w.to_vector<double>();
    const int64_t rows = sizes[0], columns = w.numel() / rows;
    const bool by_row = rows <= columns;
    const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
    const auto at = [&](int64_t i, int64_t k) {
      return v[static_cast<size_t>(by_row ? i * columns + k : k * columns + i)];
    };
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (int64_t k = 0; k < length; ++k) dot += at(i, k) * at(j, k);
        ASSERT_NEAR(dot, i == j ? 4 : 0, 1e-12) << str(sizes) << " vectors " << i << " and " << j;
      }
  }
}

TEST(Init, DefaultOfLayers) {
  Tensor w = weight(), b = empty({4000});
  init::fan_in_uniform(w, b);
  expect_uniform(w, 1 / std::sqrt(200.0));
  EXPECT_LE(moments(b).high, 1 / std::sqrt(200.0));
  EXPECT_GT(moments(b).deviation, 0);
}

TEST(Init, IsReproducibleLeavesTheGraphAndTakesAnyLayout) {
  Tensor a = empty({6, 4}).requires_grad_(), b = empty({4, 6}).t();
  manual_seed(5);
  init::normal(a);
  manual_seed(5);
  init::normal(b);
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
  EXPECT_TRUE(a.is_leaf());
  init::constant(a, 0.5);
  EXPECT_EQ(a.to_vector<float>(), std::vector<float>(24, 0.5f));
  Tensor half = empty({64, 64}, bf16);
  init::truncated_normal(half, 0, 0.02, -0.04, 0.04);
  EXPECT_NEAR(moments(half).deviation, 0.0176, 0.002);
  EXPECT_THROW(init::normal(empty({3}, i64)), Error);
}

}  // namespace
}  // namespace weft
