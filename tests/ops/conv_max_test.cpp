// What conv1d_max must share with the layers that it stands for: ties, ReLU, NaN, places that pooling drops.
#include "autograd/ops/conv_max.h"

#include <gtest/gtest.h>

#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/conv.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/pool.h"
#include "autograd/ops/reduce.h"
#include "nn/conv.h"
#include "tensor/random.h"
#include "tensor/threads.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

struct Result {
  Tensor y, dx, dweight, dbias;
};

/// Small whole numbers, whose sums of products are exact in any order.
Tensor whole(const Shape& sizes, int64_t low, int64_t high) { return randint(low, high, sizes).to(f32); }

template <class F>
Result run(const F& f, Tensor x, Tensor weight, Tensor bias) {
  for (Tensor* t : {&x, &weight, &bias}) *t = t->detach().to(test_device()).clone().requires_grad_();
  Result r{f(x, weight, bias), {}, {}, {}};
  const Tensor dy = arange(r.y.numel(), {f32, test_device()}).reshape(r.y.sizes()) + 1;
  backward({r.y}, {dy});
  r.dx = x.grad(), r.dweight = weight.grad(), r.dbias = bias.grad();
  return r;
}

Tensor fused(const Tensor& x, const Tensor& weight, const Tensor& bias) { return conv1d_max(x, weight, bias); }

/// Bit for bit the same as the layers one by one: with whole numbers, every gradient tells which place won.
void expect_as_composed(const std::vector<Tensor>& in, int64_t pool) {
  const Result one = run([pool](const Tensor& x, const Tensor& weight,
                                const Tensor& bias) { return conv1d_max(x, weight, bias, {.pool = pool}); },
                         in[0], in[1], in[2]);
  const Result composed = run(
      [pool](const Tensor& x, const Tensor& weight, const Tensor& bias) {
        return global_max_pool(max_pool1d(relu(conv1d(x, weight, bias)), {.kernel = pool}));
      },
      in[0], in[1], in[2]);
  const auto same = [](const Tensor& a, const Tensor& b, const char* what) {
    const auto p = a.to_vector<float>(), q = b.to_vector<float>();
    ASSERT_EQ(p.size(), q.size());
    for (size_t i = 0; i < p.size(); ++i)
      ASSERT_TRUE(p[i] == q[i] || (p[i] != p[i] && q[i] != q[i])) << what << " " << i << ": " << p[i] << ", " << q[i];
  };
  same(one.y, composed.y, "y");
  same(one.dx, composed.dx, "dx");
  same(one.dweight, composed.dweight, "dweight");
  same(one.dbias, composed.dbias, "dbias");
}

TEST(ConvMax, TiesAreResolvedAsInTheLayersOnDevice) {
  manual_seed(3);
  for (const int64_t length : {3, 4, 8, 17, 18, 31, 46})
    for (const int64_t pool : {1, 2, 3}) {
      if (length - 2 < pool) continue;
      SCOPED_TRACE(std::to_string(length) + " places, pool " + std::to_string(pool));
      expect_as_composed({whole({3, 2, length}, -1, 2), whole({37, 2, 3}, -1, 2), whole({37}, -2, 2)}, pool);
    }
}

TEST(ConvMax, AllNegativeIsZeroWithoutGradientOnDevice) {
  const Result r = run(fused, ones({2, 3, 20}), full({4, 3, 3}, -1), zeros({4}));
  for (const Tensor& t : {r.y, r.dx, r.dweight, r.dbias})
    for (const float v : t.to_vector<float>()) EXPECT_EQ(v, 0.0f);
}

TEST(ConvMax, NanWinsWithoutGradientOnDevice) {
  manual_seed(4);
  Tensor x = whole({2, 2, 30}, -2, 3);
  x.select(0, 1).select(1, 11).fill_(std::numeric_limits<float>::quiet_NaN());
  const Result r = run(fused, x, whole({5, 2, 3}, 1, 3), zeros({5}));
  const auto y = r.y.to_vector<float>();
  for (size_t o = 0; o < 5; ++o) EXPECT_TRUE(y[o] == y[o] && y[5 + o] != y[5 + o]);
  for (const float v : r.dbias.to_vector<float>()) EXPECT_EQ(v, v);
  for (const float v : r.dx.select(0, 1).to_vector<float>()) EXPECT_EQ(v, 0.0f);
}

// An odd number of places: the last, which would win, is dropped by a pooling of 2.
TEST(ConvMax, PlacesThatPoolingDropsDoNotCountOnDevice) {
  const Tensor x = from<float>({1, 2, 3, 4, 5}, {1, 1, 5}).to(test_device());
  const Tensor w = ones({1, 1, 3}, test_device());
  EXPECT_EQ(conv1d_max(x, w, {}, {.pool = 1}).item(), 12);
  EXPECT_EQ(conv1d_max(x, w, {}, {.pool = 2}).item(), 9);
  expect_as_composed({from<float>({1, 2, 3, 4, 5}, {1, 1, 5}), ones({1, 1, 3}), zeros({1})}, 2);
}

TEST(ConvMax, EveryNumberOfThreadsGivesTheSameBits) {
  manual_seed(5);
  const Tensor x = randn({5, 7, 40}), w = randn({50, 7, 3}), b = randn({50});
  const int before = num_threads();
  std::vector<std::vector<float>> first;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const Result r = run(fused, x, w, b);
    std::vector<std::vector<float>> all;
    for (const Tensor& t : {r.y, r.dx, r.dweight, r.dbias}) all.push_back(t.to_vector<float>());
    if (first.empty()) first = all;
    EXPECT_EQ(all, first) << threads;
  }
  set_num_threads(before);
}

/// More outputs of one sample than a device takes at a time: in the first, two places of different parts tie and the
/// earlier one wins; in the second, the later part has the maximum.
TEST(ConvMax, LongSequencesComeInPartsOnDevice) {
  const int64_t length = 2'200'000;
  Tensor x = zeros({2, 1, length});
  const auto set = [&](int64_t n, int64_t place, double value) { x.select(0, n).narrow(1, place, 1).fill_(value); };
  set(0, 7, 2), set(0, length - 5, 1.5), set(0, length - 4, 1);
  set(1, 9, 1), set(1, length - 3, 3);
  Tensor w = from<float>({1, 0.5f}, {1, 1, 2}).expand({4, 1, 2}).clone().to(test_device()).requires_grad_();
  const Tensor y = conv1d_max(x.to(test_device()), w);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{2, 2, 2, 2, 3, 3, 3, 3}));
  backward({y}, {ones_like(y)});
  EXPECT_EQ(w.grad().to_vector<float>(), (std::vector<float>{5, 0, 5, 0, 5, 0, 5, 0}));
}

TEST(ConvMax, EmptyBatch) { EXPECT_EQ(conv1d_max(empty({0, 3, 8}), ones({4, 3, 3})).sizes(), (Shape{0, 4})); }

TEST(ConvMax, WhatDoesNotFitIsNamed) {
  const Tensor w = ones({4, 3, 3});
  EXPECT_ERROR(conv1d_max(ones({2, 3, 2}), w), "[conv1d_max] the kernel spans 3, the input only 2 (input [2, 3, 2])");
  EXPECT_ERROR(conv1d_max(ones({2, 3, 3}), w, {}, {.pool = 2}), "a pooling window of 2 does not fit into 1 places");
  EXPECT_ERROR(conv1d_max(ones({2, 2, 8}), w), "weight wants 3 input channels, input has 2");
  EXPECT_ERROR(conv1d_max(ones({2, 3, 8}), w, ones({3})), "the bias wants f32 [4], got f32 [3]");
  EXPECT_ERROR(conv1d_max(ones({2, 3, 8}, f64), w), "input and weight have dtypes f64 and f32");
  EXPECT_ERROR(conv1d_max(ones({3, 8}), w), "wants input [N, C, L]");
}

TEST(ConvMax, LayerSharesItsStateWithConv1d) {
  manual_seed(6);
  nn::Conv1d conv({.in = 3, .out = 5, .kernel = 2});
  manual_seed(6);
  nn::Conv1dMax layer({.in = 3, .out = 5, .kernel = 2, .pool = 2});
  EXPECT_EQ(conv.weight.to_vector<float>(), layer.weight.to_vector<float>());
  EXPECT_EQ(conv.bias.to_vector<float>(), layer.bias.to_vector<float>());
  conv.reset_parameters();
  layer.load_state_dict(conv.state_dict());
  const Tensor x = randn({2, 3, 9});
  const auto y = layer(x).to_vector<double>();
  const auto composed = global_max_pool(max_pool1d(relu(conv(x)), {.kernel = 2})).to_vector<double>();
  ASSERT_EQ(y.size(), composed.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], composed[i], 1e-6);
}

}  // namespace
}  // namespace weft::testing
