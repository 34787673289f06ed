// Attention at the edges: masks, queries that see nothing, memory, threads, layouts, dropout, wrong arguments.
#include "autograd/ops/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/rotary.h"
#include "autograd/ops/softmax.h"
#include "tensor/random.h"
#include "tensor/threads.h"
#include "tensor/view.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

using testing::test_device;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor leaf(const Shape& sizes) { return randn(sizes, test_device()).requires_grad_(); }
bool all_finite(const Tensor& x) { return all(lt(abs(x), std::numeric_limits<double>::infinity())).item() != 0; }
double largest(const Tensor& x) { return max(abs(x)).item(); }

/// [B, S] from the keys that may be attended to: positions of each sample.
Tensor mask_of(int64_t keys, const std::vector<std::vector<int64_t>>& open) {
  Tensor mask = zeros({static_cast<int64_t>(open.size()), keys}, boolean);
  for (size_t b = 0; b < open.size(); ++b)
    for (const int64_t s : open[b]) mask.data<bool>()[static_cast<int64_t>(b) * keys + s] = true;
  return mask.to(test_device());
}

// Field case 8 for attention: our choice is zeros, and no gradient, for a query that sees nothing.
TEST(Attention, QueryThatSeesNothingGivesZerosDevice) {
  Tensor q = leaf({2, 2, 3, 4}), k = leaf({2, 2, 5, 4}), v = leaf({2, 2, 5, 4});
  const Tensor y = attention(q, k, v, {.mask = mask_of(5, {{}, {1, 4}})});
  EXPECT_EQ(largest(y.detach().select(0, 0)), 0);
  EXPECT_GT(largest(y.detach().select(0, 1)), 0);
  sum(square(y) + y).backward();
  for (const Tensor& x : {q, k, v}) {
    EXPECT_TRUE(all_finite(x.grad()));
    EXPECT_EQ(largest(x.grad().select(0, 0)), 0);
    EXPECT_GT(largest(x.grad().select(0, 1)), 0);
  }
}

TEST(Attention, MoreQueriesThanKeysWithCausalityGiveZerosFirstDevice) {
  Tensor q = leaf({1, 1, 5, 4}), k = leaf({1, 1, 2, 4});
  const Tensor y = attention(q, k, k, {.causal = true});
  EXPECT_EQ(largest(y.detach().narrow(2, 0, 3)), 0);
  EXPECT_EQ(y.detach().select(2, 3).to_vector<float>(), k.detach().select(2, 0).to_vector<float>());
  sum(y).backward();
  EXPECT_TRUE(all_finite(q.grad()) && all_finite(k.grad()));
}

// Field case 33: a padded position holds whatever it holds.
TEST(Attention, MaskedKeysAreNeverReadDevice) {
  const Tensor mask = mask_of(6, {{0, 1, 4}, {5}});
  const Tensor hole = where(mask.to(cpu), zeros({2, 6}), full({2, 6}, kNan)).to(test_device()).reshape({2, 1, 6, 1});
  Tensor q = leaf({2, 2, 3, 4}), k = leaf({2, 2, 6, 4}), v = leaf({2, 2, 6, 4});
  Tensor bad_k = (k.detach() + hole).requires_grad_(), bad_v = (v.detach() + hole).requires_grad_();
  const Tensor y = attention(q, k, v, {.mask = mask}), bad = attention(q, bad_k, bad_v, {.mask = mask});
  EXPECT_EQ(bad.to_vector<float>(), y.to_vector<float>());
  sum(square(y)).backward();
  const std::vector<float> dq = q.grad().to_vector<float>();
  q.set_grad({});
  sum(square(bad)).backward();
  EXPECT_EQ(q.grad().to_vector<float>(), dq);
  EXPECT_EQ(bad_k.grad().to_vector<float>(), k.grad().to_vector<float>());
  EXPECT_EQ(bad_v.grad().to_vector<float>(), v.grad().to_vector<float>());
}

TEST(Attention, PaddingOnTheLeftIsTheShorterSequenceDevice) {
  const Tensor q = leaf({1, 2, 4, 8}), k = leaf({1, 2, 4, 8}), v = leaf({1, 2, 4, 8});
  const auto padded = [](const Tensor& x) { return pad(x, {{3, 0}, {0, 0}}, 9.0); };
  const Tensor y = attention(q, k, v, {.causal = true});
  const Tensor longer =
      attention(padded(q), padded(k), padded(v), {.causal = true, .mask = mask_of(7, {{3, 4, 5, 6}})});
  EXPECT_LT(largest(longer.detach().narrow(2, 3, 4) - y.detach()), 1e-6);
}

TEST(Attention, OneQueryIsTheLastRowOfCausalDevice) {
  const Tensor q = leaf({2, 2, 9, 8}), k = leaf({2, 2, 9, 8}), v = leaf({2, 2, 9, 8});
  const Tensor all = attention(q, k, v, {.causal = true}).detach();
  const Tensor one = attention(q.narrow(2, 8, 1), k, v, {.causal = true}).detach();
  EXPECT_LT(largest(all.narrow(2, 8, 1) - one), 1e-6);
}

TEST(Attention, NanStaysWithItsQueryDevice) {
  Tensor q = randn({1, 1, 40, 4});
  q.select(2, 17).fill_(kNan);
  const Tensor k = leaf({1, 1, 40, 4}), y = attention(q.to(test_device()), k, k).detach();
  for (int64_t t = 0; t < 40; ++t) EXPECT_EQ(all_finite(y.select(2, t)), t != 17) << t;
}

TEST(Attention, LargeScoresDoNotOverflowDevice) {
  const Tensor q = affine(leaf({1, 1, 5, 4}), 1e4, 0), k = leaf({1, 1, 7, 4});
  Tensor v = leaf({1, 1, 7, 4});
  const Tensor y = attention(q, k, v);
  EXPECT_TRUE(all_finite(y.detach()));
  sum(y).backward();
  EXPECT_TRUE(all_finite(v.grad()) && all_finite(k.grad()));
}

// The scores of one head alone would be 64 MiB; forward and backward take a small part of that beyond their results.
TEST(Attention, MemoryIsLinearInTheSequence) {
  const int64_t length = 4096, width = 16, threads = num_threads();
  Tensor q = randn({1, 1, length, width}).requires_grad_(), k = randn({1, 1, length, width}).requires_grad_();
  memory::reset_peak();
  const int64_t before = memory::statistics().live;
  sum(attention(q, k, k, {.causal = true})).backward();
  EXPECT_LT(memory::statistics().peak - before, (20 + 20 * threads) * length * width * 4);
  EXPECT_LT(memory::statistics().peak - before, length * length * 4 / 3);
}

TEST(Attention, ThreadsDoNotChangeTheBits) {
  Tensor x = randn({2, 150, 3 * 4 * 16}).requires_grad_();
  std::vector<std::vector<float>> results;
  const int before = num_threads();
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    x.set_grad({});
    const Tensor y = self_attention(x, 4, {.causal = true});
    sum(square(y)).backward();
    results.push_back(cat({y.detach().flatten(), x.grad().flatten()}).to_vector<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(Attention, PackedIsTheSameAsThreeViewsDevice) {
  Tensor x = leaf({2, 70, 3 * 2 * 8}), same = x.detach().clone().requires_grad_();
  const Tensor y = self_attention(x, 2, {.causal = true});
  const Tensor parts = same.reshape({2, 70, 3, 2, 8});
  const auto part = [&](int64_t i) { return parts.select(2, i).transpose(1, 2); };
  const Tensor joined = attention(part(0), part(1), part(2), {.causal = true}).transpose(1, 2).flatten(2);
  EXPECT_EQ(y.to_vector<float>(), joined.to_vector<float>());
  sum(square(y)).backward();
  sum(square(joined)).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), same.grad().to_vector<float>());
}

TEST(Attention, JoiningHeadsCopiesNothing) {
  const Tensor q = randn({2, 3, 5, 4}), joined = attention(q, q, q).transpose(1, 2);
  EXPECT_TRUE(joined.is_contiguous());
}

TEST(Attention, GradientsThatAreNotWantedAreLeftOutDevice) {
  Tensor q = leaf({1, 2, 5, 4}), k = randn({1, 2, 6, 4}, test_device()), v = leaf({1, 2, 6, 4});
  sum(attention(q, k, v)).backward();
  EXPECT_TRUE(q.grad().defined() && v.grad().defined() && !k.grad().defined());
}

TEST(Attention, DropoutDropsItsShareAndKeepsTheMeanDevice) {
  manual_seed(3);
  const int64_t length = 128;
  const Tensor q = zeros({1, 4, length, 4}, test_device()), v = ones({1, 4, length, 4}, test_device());
  const Tensor y = attention(q, q, v, {.dropout = 0.25});
  EXPECT_NEAR(mean(y).item(), 1, 0.01);
  const double deviation = std::sqrt(0.25 / 0.75 / static_cast<double>(length));
  EXPECT_NEAR(std::sqrt(mean(square(y.narrow(3, 0, 1) - 1)).item()), deviation, 0.2 * deviation);
  const Tensor again = attention(q, q, v, {.dropout = 0.25});
  EXPECT_GT(largest(again - y), 0) << "the generator stood still";
}

TEST(Attention, AllDroppedIsZeroBothWaysDevice) {
  Tensor q = leaf({1, 2, 5, 4}), x = leaf({1, 5, 24});
  for (const Tensor& y : {attention(q, q, q, {.dropout = 1}), self_attention(x, 2, {.dropout = 1})}) {
    EXPECT_EQ(largest(y.detach()), 0);
    sum(y).backward();
  }
  EXPECT_EQ(largest(q.grad()), 0);
  EXPECT_EQ(largest(x.grad()), 0);
}

TEST(Attention, NoElementsDevice) {
  Tensor q = leaf({2, 2, 0, 4}), k = leaf({2, 2, 3, 4});
  sum(attention(q, k, k)).backward();
  EXPECT_EQ(largest(k.grad()), 0);
  Tensor none = leaf({2, 2, 0, 4});
  const Tensor y = attention(k, none, none);
  EXPECT_EQ(largest(y.detach()), 0);
  k.set_grad({});
  sum(y).backward();
  EXPECT_EQ(largest(k.grad()), 0);
  EXPECT_EQ(attention(leaf({0, 2, 3, 4}), leaf({0, 2, 3, 4}), leaf({0, 2, 3, 4})).sizes(), Shape({0, 2, 3, 4}));
}

TEST(Attention, AutocastComputesInSixteenBitsDevice) {
  Tensor x = leaf({1, 9, 24});
  const Autocast guard(bf16);
  const Tensor y = self_attention(x, 2);
  EXPECT_EQ(y.dtype(), bf16);
  sum(y).backward();
  EXPECT_EQ(x.grad().dtype(), f32);
}

TEST(Attention, WrongArgumentsAreNamed) {
  const Tensor q = randn({2, 4, 3, 8});
  const auto message = [&](const Tensor& k, const Tensor& v, const AttentionOptions& o) {
    return error_of([&] { attention(q, k, v, o); });
  };
  EXPECT_NE(message(randn({2, 4, 5, 7}), randn({2, 4, 5, 7}), {}).find("[2, 4, 5, 7]"), std::string::npos);
  EXPECT_NE(message(randn({2, 3, 5, 8}), randn({2, 3, 5, 8}), {}).find("4 heads cannot share 3"), std::string::npos);
  EXPECT_NE(message(q, q, {.mask = ones({2, 3})}).find("bool [2, 3], got f32"), std::string::npos);
  EXPECT_NE(message(q, q, {.mask = zeros({3, 2}, boolean)}).find("got bool [3, 2]"), std::string::npos);
  EXPECT_NE(message(q.to(f64), q.to(f64), {}).find("f32, f64 and f64"), std::string::npos);
  EXPECT_NE(error_of([&] { self_attention(randn({2, 3, 8}), 2); }).find("[2, 3, 8]"), std::string::npos);
  EXPECT_NE(error_of([&] { rotary(randn({2, 3, 4, 5})); }).find("even D, got [2, 3, 4, 5]"), std::string::npos);
}

TEST(Rotary, ProductsDependOnDistanceOnlyDevice) {
  const Tensor q = randn({1, 1, 6, 8}, TensorOptions(f64, test_device()));
  const auto scores = [&](int64_t offset) {
    const Tensor x = rotary(q, {.offset = offset});
    return matmul(x, x.transpose(2, 3));
  };
  EXPECT_LT(largest(scores(0) - scores(1000)), 1e-9);
}

TEST(Rotary, LatePositionsAreExactDevice) {
  const Tensor x = ones({1, 1, 1, 2}, test_device());
  const std::vector<double> y = rotary(x, {.offset = 1'000'003}).to_vector<double>();
  EXPECT_NEAR(y[0], std::cos(1'000'003.0) - std::sin(1'000'003.0), 1e-6);
  EXPECT_NEAR(y[1], std::sin(1'000'003.0) + std::cos(1'000'003.0), 1e-6);
}

}  // namespace
}  // namespace weft
