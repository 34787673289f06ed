// Normalisation at the edges: running statistics, batches of one and of none, layouts, far from zero.
#include "autograd/ops/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/threads.h"
#include "tensor/view.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

using Doubles = std::vector<double>;

bool all_finite(const Tensor& x) { return all(lt(abs(x), std::numeric_limits<double>::infinity())).item() != 0; }

TEST(BatchNorm, MovesTheRunningStatistics) {
  const Tensor x = from<float>({1, 2, 3, 6, 10, 20, 30, 60}, {2, 4}).t().contiguous();  // [4, 2]
  Tensor mean = zeros({2}), variance = ones({2});
  batch_norm(x, {}, {}, mean, variance, {.momentum = 0.25});
  EXPECT_EQ(mean.to_vector<double>(), (Doubles{0.75, 7.5}));
  // Unbiased: 14 / 3 and 1400 / 3.
  EXPECT_NEAR(variance.to_vector<double>()[0], 0.75 + 0.25 * 14 / 3, 1e-6);
  EXPECT_NEAR(variance.to_vector<double>()[1], 0.75 + 0.25 * 1400 / 3, 1e-4);
  const Doubles before = mean.to_vector<double>();
  batch_norm(x, {}, {}, mean, variance, {.training = false});
  EXPECT_EQ(mean.to_vector<double>(), before);
}

// Field case 17.
TEST(BatchNorm, OneValuePerChannelThrowsAndLeavesTheStatistics) {
  Tensor mean = full({3}, 0.5), variance = full({3}, 2);
  for (const Shape& sizes : {Shape{1, 3}, Shape{1, 3, 1, 1}, Shape{1, 3, 1}}) {
    EXPECT_NE(error_of([&] {
                batch_norm(randn(sizes), {}, {}, mean, variance);
              }).find("[batch_norm] training wants more than one value per channel"),
              std::string::npos);
    EXPECT_TRUE(all_finite(batch_norm(randn(sizes), {}, {}, mean, variance, {.training = false})));
  }
  EXPECT_EQ(mean.to_vector<double>(), Doubles(3, 0.5));
  EXPECT_EQ(variance.to_vector<double>(), Doubles(3, 2));
  EXPECT_TRUE(all_finite(batch_norm(randn({1, 3, 2, 1}), {}, {}, mean, variance)));
  EXPECT_TRUE(all_finite(variance));
}

// Field case 17, the batch of none.
TEST(BatchNorm, EmptyBatchLeavesTheStatistics) {
  Tensor mean = full({3}, 0.5), variance = full({3}, 2), weight = ones({3}), bias = zeros({3});
  weight.requires_grad_();
  bias.requires_grad_();
  for (bool training : {true, false}) {
    for (const Shape& sizes : {Shape{0, 3}, Shape{0, 3, 4, 4}, Shape{2, 3, 0}}) {
      Tensor x = empty(sizes);
      x.requires_grad_();
      const Tensor y = batch_norm(x, weight, bias, mean, variance, {.training = training});
      EXPECT_EQ(y.sizes(), sizes);
      sum(y).backward();
      EXPECT_EQ(x.grad().sizes(), sizes);
    }
  }
  EXPECT_EQ(mean.to_vector<double>(), Doubles(3, 0.5));
  EXPECT_EQ(variance.to_vector<double>(), Doubles(3, 2));
  EXPECT_EQ(weight.grad().to_vector<double>(), Doubles(3, 0));
  EXPECT_EQ(bias.grad().to_vector<double>(), Doubles(3, 0));
}

// Field case 3, the statistics of a long batch; in float alone the mean would stop short.
TEST(BatchNorm, StatisticsOfManyValuesAreExact) {
  Tensor mean = zeros({2}), variance = zeros({2});
  Tensor x = ones({9'000'000, 2});
  raw::narrow(x, 0, 0, 4'500'000).fill_(3);
  batch_norm(x, {}, {}, mean, variance, {.momentum = 1});
  EXPECT_EQ(mean.to_vector<double>(), (Doubles{2, 2}));
  EXPECT_NEAR(variance.to_vector<double>()[0], 1, 1e-6);
}

TEST(BatchNorm, KeepsChannelsLastAndItsValues) {
  const Tensor x = randn({4, 16, 5, 6}), weight = rand({16}), bias = rand({16}), dy = randn({4, 16, 5, 6});
  std::vector<Doubles> results;
  for (const Tensor& layout : {x, raw::channels_last(x)}) {
    for (const Tensor& upstream : {dy, raw::channels_last(dy)}) {
      Tensor in = raw::clone(layout), w = raw::clone(weight), b = raw::clone(bias);
      for (Tensor* t : {&in, &w, &b}) t->requires_grad_();
      const Tensor y = batch_norm(in, w, b, {}, {});
      EXPECT_EQ(y.strides(), in.strides());
      y.backward({.gradient = upstream});
      Doubles all_values = y.to_vector<double>();
      for (const Tensor& g : {in.grad(), w.grad(), b.grad()})
        for (double v : g.to_vector<double>()) all_values.push_back(v);
      results.push_back(all_values);
    }
  }
  for (const Doubles& other : results)
    for (size_t i = 0; i < other.size(); ++i) ASSERT_NEAR(other[i], results[0][i], 2e-5) << i;
}

TEST(BatchNorm, ReplayDoesNotMoveTheStatisticsAgain) {
  Tensor mean = zeros({3}), variance = ones({3}), x = randn({8, 3});
  x.requires_grad_();
  sum(square(recompute([&](const Tensor& in) { return batch_norm(in, {}, {}, mean, variance); }, x))).backward();
  Tensor mean_once = zeros({3}), variance_once = ones({3});
  batch_norm(x.detach(), {}, {}, mean_once, variance_once);
  EXPECT_EQ(mean.to_vector<double>(), mean_once.to_vector<double>());
  EXPECT_EQ(variance.to_vector<double>(), variance_once.to_vector<double>());
}

// Field case 22: refused, so that no saved statistic can pass for a constant.
TEST(BatchNorm, SecondDerivativesAreRefused) {
  Tensor x = randn({8, 3});
  x.requires_grad_();
  const Tensor loss = sum(square(batch_norm(x, {}, {}, {}, {})));
  EXPECT_NE(error_of([&] {
              loss.backward({.gradient = {}, .create_graph = true});
            }).find("[backward] second derivatives are not supported"),
            std::string::npos);
}

TEST(Norm, GradientsDoNotDependOnThreads) {
  const int before = num_threads();
  const Tensor image = randn({6, 32, 30, 30}), rows = randn({900, 300}), wide = rand({300}), channels = rand({32});
  std::vector<Doubles> results;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    Doubles values;
    auto run = [&](const Tensor& in, const Tensor& weight,
                   const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
      Tensor x = raw::clone(in), w = raw::clone(weight);
      x.requires_grad_();
      w.requires_grad_();
      sum(f(x, w) * x.detach()).backward();
      for (const Tensor& g : {x.grad(), w.grad()})
        for (double v : g.to_vector<double>()) values.push_back(v);
    };
    auto batch = [](const Tensor& x, const Tensor& w) { return batch_norm(x, w, {}, {}, {}); };
    run(image, channels, batch);
    run(raw::channels_last(image), channels, batch);
    run(rows, wide, [](const Tensor& x, const Tensor& w) { return layer_norm(x, w, {}); });
    run(rows, wide, [](const Tensor& x, const Tensor& w) { return rms_norm(x, w); });
    run(image, channels, [](const Tensor& x, const Tensor& w) { return group_norm(x, 4, w, {}); });
    results.push_back(std::move(values));
  }
  set_num_threads(before);
  EXPECT_TRUE(results[0] == results[1]);
  EXPECT_TRUE(results[0] == results[2]);
}

TEST(Norm, HalfInputsTakeSingleWeights) {
  const Tensor x = randn({4, 6}).to(bf16);
  Tensor w = ones({6}), b = zeros({6});
  w.requires_grad_();
  b.requires_grad_();
  const Tensor y = layer_norm(x, w, b);
  EXPECT_EQ(y.dtype(), bf16);
  sum(y).backward();
  EXPECT_EQ(w.grad().dtype(), f32);
  Tensor mean = zeros({6}), variance = ones({6});
  EXPECT_EQ(batch_norm(x, w.detach(), b.detach(), mean, variance).dtype(), bf16);
  EXPECT_TRUE(all_finite(variance));
}

TEST(Norm, ConstantRowsAreFinite) {
  for (const Tensor& x : {full({3, 8}, 5), zeros({3, 8})}) {
    Tensor leaf = raw::clone(x);
    leaf.requires_grad_();
    sum(square(layer_norm(leaf, Shape{8}, {}, {}) + rms_norm(leaf, ones({8})) + batch_norm(leaf, {}, {}, {}, {})))
        .backward();
    EXPECT_TRUE(all_finite(leaf.grad()));
  }
}

TEST(Norm, NoElements) {
  for (const Shape& sizes : {Shape{0, 4}, Shape{0, 4, 3}}) {
    Tensor x = empty(sizes);
    x.requires_grad_();
    sum(group_norm(x, 2, ones({4}), {})).backward();
    EXPECT_EQ(x.grad().sizes(), sizes);
  }
  Tensor x = empty({0, 4}), w = ones({4});
  w.requires_grad_();
  sum(layer_norm(x, w, {})).backward();
  EXPECT_EQ(w.grad().to_vector<double>(), Doubles(4, 0));
  EXPECT_EQ(layer_norm(empty({3, 0}), Shape{0}, {}, {}).sizes(), (Shape{3, 0}));
}

/// On the device under test.
Tensor there(const Tensor& x) { return x.to(testing::test_device()); }

/// The same values, contiguous and not at 128 bits.
Tensor unaligned(const Tensor& x) {
  Tensor memory = empty({x.numel() + 1}, {x.dtype(), x.device()});
  Tensor view = raw::view(memory, x.sizes(), raw::contiguous(x).strides(), 1);
  view.copy_(x);
  return view;
}

TEST(NormOnDevice, MovesTheRunningStatistics) {
  for (const Shape& sizes : {Shape{8, 3}, Shape{4, 3, 2}}) {
    Tensor mean = there(full({3}, 1)), variance = there(full({3}, 2));
    const Tensor x = there(arange(24, f32)).reshape(sizes);
    batch_norm(x, {}, {}, mean, variance, {.momentum = 0.25});
    const Tensor flat = sizes.size() == 2 ? x : x.transpose(1, 2).reshape({8, 3});
    const Doubles wanted_mean = weft::mean(flat, {0}).to_vector<double>();
    const Doubles wanted_variance = var(flat, {0}).to_vector<double>();
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(mean.to_vector<double>()[c], 0.75 + 0.25 * wanted_mean[c], 1e-6);
      EXPECT_NEAR(variance.to_vector<double>()[c], 1.5 + 0.25 * wanted_variance[c], 1e-5);
    }
    const Doubles before = mean.to_vector<double>();
    batch_norm(x, {}, {}, mean, variance, {.training = false});
    EXPECT_EQ(mean.to_vector<double>(), before);
  }
}

TEST(NormOnDevice, LargeMeansCostNoPrecision) {
  const auto check = [](const Tensor& x, const std::function<Tensor(const Tensor&)>& norm) {
    const Doubles got = norm(there(x)).to_vector<double>(), wanted = norm(x.to(f64)).to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 1e-3) << i;
  };
  const auto batch = [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}); };
  const Tensor image = randn({10, 8, 6, 4}) + full({}, 3000);
  check(image, batch);
  check(raw::channels_last(image), batch);
  check(image, [](const Tensor& x) { return group_norm(x, 2, {}, {}); });
  for (int64_t n : {40, 301, 2056})
    check(randn({3, n}) + full({}, 3000), [n](const Tensor& x) { return layer_norm(x, Shape{n}, {}, {}); });
}

TEST(NormOnDevice, UnalignedOperands) {
  const Tensor x = randn({5, 16}), image = randn({2, 4, 8}), w = rand({16}), v = rand({4});
  const auto all_of = [](const Tensor& rows, const Tensor& planes, const Tensor& weight, const Tensor& channels) {
    Doubles values;
    const auto run = [&](const Tensor& in, const Tensor& wide, auto norm) {
      Tensor leaf = in.detach(), scale = wide.detach();
      leaf.requires_grad_();
      scale.requires_grad_();
      const Tensor y = norm(leaf, scale);
      y.backward({.gradient = y.detach()});
      for (const Tensor& t : {y, leaf.grad(), scale.grad()})
        for (double value : t.to_vector<double>()) values.push_back(value);
    };
    run(rows, weight, [](const Tensor& a, const Tensor& b) { return batch_norm(a, b, b, {}, {}); });
    run(planes, channels, [](const Tensor& a, const Tensor& b) { return batch_norm(a, b, b, {}, {}); });
    run(rows, weight, [](const Tensor& a, const Tensor& b) { return layer_norm(a, b, b); });
    run(planes, channels, [](const Tensor& a, const Tensor& b) { return group_norm(a, 2, b, b); });
    return values;
  };
  const Doubles wanted = all_of(x, image, w, v);
  for (const auto& [rows, weight] :
       {std::pair(unaligned(there(x)), there(w)), std::pair(there(x), unaligned(there(w)))}) {
    const Doubles got = all_of(rows, unaligned(there(image)), weight, unaligned(there(v)));
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 2e-5) << i;
  }
}

TEST(NormOnDevice, NoElements) {
  for (const Shape& sizes : {Shape{0, 4}, Shape{0, 4, 3}, Shape{2, 4, 0}}) {
    Tensor x = there(empty(sizes)), w = there(ones({4}));
    x.requires_grad_();
    w.requires_grad_();
    sum(group_norm(x, 2, w, {})).backward();
    sum(batch_norm(x, w, w, {}, {})).backward();
    EXPECT_EQ(w.grad().to_vector<double>(), Doubles(4, 0));
  }
  Tensor x = there(empty({0, 4})), w = there(ones({4}));
  w.requires_grad_();
  sum(layer_norm(x, w, {})).backward();
  EXPECT_EQ(w.grad().to_vector<double>(), Doubles(4, 0));
  EXPECT_EQ(layer_norm(there(empty({3, 0})), Shape{0}, {}, {}).sizes(), (Shape{3, 0}));
  EXPECT_EQ(batch_norm(there(empty({3, 0})), {}, {}, {}, {}).sizes(), (Shape{3, 0}));
}

TEST(Norm, MistakesAreNamed) {
  const Tensor x = ones({2, 6, 4});
  EXPECT_NE(error_of([&] {
              batch_norm(x, ones({5}), {}, {}, {});
            }).find("[batch_norm] weight wants shape [6], got [5] (input [2, 6, 4])"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              batch_norm(x, {}, {}, {}, {}, {.training = false});
            }).find("[batch_norm] evaluation wants the running"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              layer_norm(x, ones({6}), {});
            }).find("[layer_norm] normalises over [6], which the input [2, 6, 4]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { group_norm(x, 4, {}, {}); }).find("[group_norm] 6 channels do not make 4 groups"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              rms_norm(ones({2, 4}, i64), ones({4}));
            }).find("[rms_norm] wants a floating dtype"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
