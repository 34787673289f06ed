// Dropout: the ends of its range, layouts, draws.
#include "autograd/ops/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/random.h"
#include "tensor/threads.h"
#include "tensor/view.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

using Floats = std::vector<float>;

// google/flax#2055, shainet#106, axon#367: 1 / (1 - p) is infinite at p = 1.
TEST(Dropout, AllDroppedIsZeroBothWays) {
  Tensor x = from<float>({1, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}, {3});
  x.requires_grad_();
  const Tensor y = dropout(x, 1, true);
  EXPECT_EQ(y.to_vector<float>(), Floats(3, 0));
  y.backward({.gradient = full({3}, std::numeric_limits<float>::infinity())});
  EXPECT_EQ(x.grad().to_vector<float>(), Floats(3, 0));
}

TEST(Dropout, IdentityDrawsNothing) {
  const Tensor x = randn({10});
  const uint64_t before = default_generator().state().offset;
  EXPECT_EQ(dropout(x, 0, true).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(dropout(x, 0.5, false).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(default_generator().state().offset, before);
}

TEST(Dropout, RefusesWhatIsNoProbability) {
  EXPECT_ERROR(dropout(zeros({2}), -0.1, true), "[dropout] the probability must lie in [0, 1], got -0.1");
  EXPECT_ERROR(dropout(zeros({2}), 1.5, false), "got 1.5");
  EXPECT_ERROR(dropout(zeros({2}), std::nan(""), true), "got nan");
  EXPECT_ERROR(dropout(zeros({2}, i64), 0.5, true), "wants a floating dtype, got i64");
}

// kaldi-asr/kaldi#3890: a mask recovered from out / in is wrong where the input is 0.
TEST(Dropout, MaskIsKeptNotRecovered) {
  Tensor x = zeros({1000});
  x.requires_grad_();
  manual_seed(3);
  sum(dropout(x, 0.25, true)).backward();
  manual_seed(3);
  const Floats of_ones = dropout(ones({1000}), 0.25, true).to_vector<float>();
  EXPECT_EQ(x.grad().to_vector<float>(), of_ones);
  int kept = 0;
  for (float v : of_ones) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.75F);
    kept += v != 0;
  }
  EXPECT_NEAR(kept, 750, 60);
}

TEST(Dropout, ShareOfZerosIsP) {
  manual_seed(5);
  const int64_t n = 1 << 20;
  for (double p : {0.001, 0.1, 0.5, 0.999}) {
    const double zeros_seen = 1 - sum(ne(dropout(ones({n}), p, true), 0).to(f32)).item() / static_cast<double>(n);
    EXPECT_NEAR(zeros_seen, p, 6 * std::sqrt(p * (1 - p) / static_cast<double>(n)));
  }
}

TEST(Dropout, SameForAnyNumberOfThreadsAndFreshEachTime) {
  const int before = num_threads();
  const Tensor x = ones({100'003});
  std::vector<Floats> results;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    manual_seed(8);
    results.push_back(dropout(x, 0.5, true).to_vector<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
  EXPECT_NE(dropout(x, 0.5, true).to_vector<float>(), results[0]);
}

TEST(Dropout, KeepsChannelsLastAndDrawsInMemoryOrder) {
  Tensor x = raw::channels_last(ones({2, 3, 4, 5}));
  x.requires_grad_();
  manual_seed(4);
  const Tensor y = dropout(x, 0.5, true);
  EXPECT_TRUE(y.is_channels_last());
  manual_seed(4);
  const Tensor row_major = dropout(ones({2, 4, 5, 3}), 0.5, true);
  EXPECT_EQ(y.permute({0, 2, 3, 1}).to_vector<float>(), row_major.to_vector<float>());
  sum(y).backward();
  EXPECT_EQ(x.grad().to_vector<float>(), y.to_vector<float>());
}

/// Values but for the rounding of one addition; gradients bit for bit.
TEST(DropoutAdd, IsItsParts) {
  for (const double p : {0.0, 0.3, 1.0}) {
    SCOPED_TRACE(p);
    std::vector<Tensor> parts = {randn({6, 45}), randn({45}), randn({6, 45})}, fused;
    for (Tensor& x : parts) {
      fused.push_back(x.clone());
      fused.back().requires_grad_();
      x.requires_grad_();
    }
    const Tensor dy = randn({6, 45});
    manual_seed(2);
    const Tensor y = parts[2] + dropout(parts[0] + parts[1], p, true);
    const uint64_t after = default_generator().state().offset;
    manual_seed(2);
    const Tensor z = dropout_add(fused[0], fused[1], fused[2], p, true);
    EXPECT_EQ(default_generator().state().offset, after);
    const std::vector<float> apart = y.to_vector<float>(), together = z.to_vector<float>();
    for (size_t i = 0; i < apart.size(); ++i) EXPECT_NEAR(apart[i], together[i], 1e-6) << i;
    y.backward({.gradient = dy});
    z.backward({.gradient = dy});
    for (size_t i = 0; i < parts.size(); ++i)
      EXPECT_EQ(parts[i].grad().to_vector<float>(), fused[i].grad().to_vector<float>()) << i;
  }
}

TEST(DropoutAdd, AnyLayoutAndNoElements) {
  const Tensor x = randn({5, 4}), residual = randn({4, 5});
  EXPECT_EQ(dropout_add(x.transpose(0, 1), Tensor(), residual, 0.5, false).to_vector<float>(),
            (x.transpose(0, 1) + residual).to_vector<float>());
  EXPECT_EQ(dropout_add(zeros({0, 3}), zeros({3}), zeros({0, 3}), 0.5, true).sizes(), (Shape{0, 3}));
}

TEST(DropoutAdd, RefusesWhatDoesNotFit) {
  const Tensor x = zeros({2, 3});
  EXPECT_ERROR(dropout_add(x, Tensor(), zeros({3, 2}), 0.1, true),
               "[dropout_add] x is f32 [2, 3], the residual f32 [3, 2]");
  EXPECT_ERROR(dropout_add(x, zeros({2}), x, 0.1, true), "the bias of x f32 [2, 3] is f32 [2]");
  EXPECT_ERROR(dropout_add(x, Tensor(), zeros({2, 3}, f64), 0.1, true), "the residual f64");
  EXPECT_ERROR(dropout_add(x, Tensor(), x, 2, true), "must lie in [0, 1], got 2");
}

TEST(Dropout, ReusesOnlyTemporaries) {
  const Tensor x = ones({64});
  dropout(x, 0.5, true);
  EXPECT_EQ(x.to_vector<float>(), Floats(64, 1));
  Tensor fresh = x * 2;
  const void* memory = fresh.raw_data();
  EXPECT_EQ(dropout(std::move(fresh), 0.5, true).raw_data(), memory);
}

}  // namespace
}  // namespace weft
