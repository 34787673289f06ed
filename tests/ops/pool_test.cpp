// Pooling: ties, NaN, output sizes, layouts of the incoming gradient, refusals.
#include "autograd/ops/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autograd/autograd.h"
#include "tensor/threads.h"
#include "tensor/view.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

using Values = std::vector<double>;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Tensor leaf(Tensor x) { return x.requires_grad_(); }

Values gradient_of_sum(const Tensor& y, const Tensor& x) {
  backward({y}, {ones_like(y)});
  return x.grad().to_vector<double>();
}

TEST(Pool, TiesGiveTheGradientToTheFirst) {
  const Tensor x = leaf(ones({1, 1, 2, 4}, f64));
  const Tensor y = max_pool2d(x, {.kernel = 2});
  EXPECT_EQ(gradient_of_sum(y, x), (Values{1, 0, 1, 0, 0, 0, 0, 0}));
  const Tensor z = leaf(zeros({1, 2, 3}, f64));
  EXPECT_EQ(gradient_of_sum(global_max_pool(z), z), (Values{1, 0, 0, 1, 0, 0}));
}

TEST(Pool, OverlappingWindowsAddTheirGradients) {
  const Tensor x = leaf(from<double>({5, 3, 1, 2, 5}, {1, 1, 5}));
  const Tensor y = max_pool1d(x, {.kernel = 2, .stride = 1});
  EXPECT_EQ(y.to_vector<double>(), (Values{5, 3, 2, 5}));
  EXPECT_EQ(gradient_of_sum(y, x), (Values{1, 1, 0, 1, 1}));
}

TEST(Pool, CeilModeLeavesOutWindowsThatStartInThePadding) {
  const auto size = [](Shape image, Pool2dOptions o) {
    o.ceil_mode = true;
    const Shape y = max_pool2d(zeros({1, 1, image[0], image[1]}), o).sizes();
    EXPECT_EQ(avg_pool2d(zeros({1, 1, image[0], image[1]}), o).sizes(), y);
    return Shape{y[2], y[3]};
  };
  EXPECT_EQ(size({5, 5}, {.kernel = 2, .padding = 1}), (Shape{3, 3}));
  EXPECT_EQ(size({6, 7}, {.kernel = 1, .stride = 2}), (Shape{3, 4}));
  EXPECT_EQ(size({8, 10}, {.kernel = 3, .stride = 4}), (Shape{2, 3}));
  EXPECT_EQ(size({5, 5}, {.kernel = 3, .padding = 1}), (Shape{2, 2}));
  EXPECT_EQ(size({1, 1}, {.kernel = 2}), (Shape{1, 1}));
}

TEST(Pool, NaNAndInfinityWin) {
  const Tensor x = leaf(from<double>({1, kNaN, kNaN, 2, -INFINITY, -INFINITY, 3, kNaN}, {1, 1, 8}));
  const Tensor y = max_pool1d(x, {.kernel = 2});
  const Values v = y.to_vector<double>();
  EXPECT_TRUE(std::isnan(v[0]) && std::isnan(v[1]) && std::isnan(v[3]));
  EXPECT_EQ(v[2], -INFINITY);
  EXPECT_EQ(gradient_of_sum(y, x), (Values{0, 1, 1, 0, 1, 0, 0, 1}));
}

TEST(Pool, PaddingNeverWins) {
  const Tensor y = max_pool2d(full({1, 1, 3, 3}, -5.0), {.kernel = 3, .stride = 2, .padding = 1});
  EXPECT_EQ(y.to_vector<double>(), Values(4, -5));
}

TEST(Pool, AverageCountsWhatItSays) {
  const Tensor x = ones({1, 1, 3}, f64);
  EXPECT_EQ(avg_pool1d(x, {.kernel = 2, .padding = 1}).to_vector<double>(), (Values{0.5, 1}));
  EXPECT_EQ(avg_pool1d(x, {.kernel = 2, .padding = 1, .count_padding = false}).to_vector<double>(), (Values{1, 1}));
  // The second window has one place inside, and nothing beyond the input counts.
  EXPECT_EQ(avg_pool1d(x, {.kernel = 2, .ceil_mode = true}).to_vector<double>(), (Values{1, 1}));
}

TEST(Pool, ResultIsChannelsLastAndSameFromEveryLayout) {
  const Tensor x = randn({3, 32, 8, 8});
  const Tensor wide = raw::channels_last(x);
  const Tensor a = max_pool2d(x, {.kernel = 2}), b = max_pool2d(wide, {.kernel = 2});
  EXPECT_TRUE(a.is_channels_last() && b.is_channels_last());
  EXPECT_EQ(a.to_vector<float>(), b.to_vector<float>());
}

TEST(Pool, GradientAfterFlattenEqualsGradientWithout) {
  const Tensor weight = rand({4, 16, 3, 3});
  const auto gradient = [&](const Pool2dOptions& o, bool flat) {
    Tensor x = raw::channels_last(randn({4, 16, 6, 6}));
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>((i * 7919) % 1009);
    x.requires_grad_();
    const Tensor y = max_pool2d(x, o);
    if (flat)
      backward({y.flatten(1)}, {weight.flatten(1)});
    else
      backward({y}, {raw::channels_last(weight)});
    return x.grad().to_vector<float>();
  };
  for (const Pool2dOptions& o : {Pool2dOptions{.kernel = 2}, Pool2dOptions{.kernel = 3, .stride = 2, .padding = 1}})
    EXPECT_EQ(gradient(o, true), gradient(o, false));
}

TEST(Pool, ThreadsDoNotChangeAnything) {
  const int before = num_threads();
  std::vector<std::vector<float>> grads;
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    Tensor x = raw::channels_last(zeros({2, 64, 40, 40}));
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(std::sin(static_cast<double>(i)));
    x.requires_grad_();
    const Tensor y = max_pool2d(x, {.kernel = 3, .stride = 2}), z = avg_pool2d(x, {.kernel = 3, .stride = 2});
    backward({y, z}, {y.detach(), z.detach()});
    grads.push_back(x.grad().to_vector<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(grads[0], grads[1]);
}

TEST(Pool, EmptyBatchAndNoChannels) {
  const Tensor x = leaf(zeros({0, 3, 4, 4}));
  const Tensor y = max_pool2d(x, {.kernel = 2});
  EXPECT_EQ(y.sizes(), (Shape{0, 3, 2, 2}));
  backward({y}, {ones_like(y)});
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(avg_pool2d(zeros({2, 0, 4, 4}), {.kernel = 2}).sizes(), (Shape{2, 0, 2, 2}));
}

// Windows of few places and of many, which devices treat differently.
TEST(PoolOnDevice, TheFirstOfEqualsAndNaNWin) {
  for (const int64_t n : {8, 100}) {
    for (const auto& [at, value] : {std::pair<size_t, double>{2, 5}, {2, kNaN}, {n - 1, kNaN}, {0, 0}, {n - 3, 1}}) {
      Values values(static_cast<size_t>(n), 0.0), wanted = values;
      values[at] = value;
      if (at == 2) values[static_cast<size_t>(n) - 2] = value;
      if (std::isnan(value)) values[at > 0 ? at - 1 : 1] = 7;
      wanted[at] = 1;
      const Tensor x = leaf(from(values, {1, 1, 1, n}).to(f32).to(testing::test_device()));
      const Tensor y = max_pool2d(x, {.kernel = {1, n}});
      const double best = y.to_vector<double>()[0];
      EXPECT_TRUE(best == value || (std::isnan(best) && std::isnan(value))) << best;
      EXPECT_EQ(gradient_of_sum(y, x), wanted) << n << ' ' << at << ' ' << value;
    }
  }
}

TEST(PoolOnDevice, UnalignedOperandsAndNoElements) {
  const Tensor image = randn({2, 8, 5, 5});
  const auto values_of = [&](const Tensor& x) {
    const Tensor in = leaf(x.detach());
    const Tensor y = max_pool2d(in, {.kernel = 2}), z = avg_pool2d(in, {.kernel = 2});
    backward({y, z}, {y.detach(), z.detach()});
    Values values = y.to_vector<double>();
    for (const Tensor& t : {z, in.grad()})
      for (const double v : t.to_vector<double>()) values.push_back(v);
    return values;
  };
  const Tensor dense = raw::channels_last(image).to(testing::test_device());
  const Tensor memory = empty({image.numel() + 1}, testing::test_device());
  Tensor unaligned = raw::view(memory, image.sizes(), raw::channels_last(image).strides(), 1);
  unaligned.copy_(dense);
  const Values got = values_of(unaligned), wanted = values_of(raw::channels_last(image));
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6) << i;
  for (const Shape& sizes : {Shape{0, 3, 9, 9}, Shape{2, 0, 9, 9}}) {
    for (const int64_t kernel : {2, 9}) {
      const Tensor x = leaf(zeros(sizes, testing::test_device()));
      const Tensor y = max_pool2d(x, {.kernel = kernel}), z = avg_pool2d(x, {.kernel = kernel});
      backward({y, z}, {ones_like(y), ones_like(z)});
      EXPECT_EQ(x.grad().sizes(), sizes);
    }
  }
}

TEST(Pool, RefusesWhatDoesNotFit) {
  EXPECT_EQ(error_of([] {
              max_pool2d(zeros({1, 1, 2, 5}), {.kernel = 3});
            }),
            "[max_pool2d] a window of 3 does not fit into 2 with padding 0 (input [1, 1, 2, 5])");
  EXPECT_EQ(error_of([] {
              max_pool2d(zeros({1, 2, 5}), {.kernel = 3});
            }),
            "[max_pool2d] wants an input [N, C, H, W], got [1, 2, 5]");
  EXPECT_EQ(error_of([] {
              avg_pool1d(zeros({1, 1, 5}), {.kernel = 2, .padding = 2});
            }),
            "[avg_pool1d] padding 2 must be at least 0 and below the kernel, 2");
  EXPECT_EQ(error_of([] {
              global_avg_pool(zeros({4, 3}));
            }),
            "[global_avg_pool] wants an input [N, C, …] with places to pool over, got [4, 3]");
  EXPECT_EQ(error_of([] {
              max_pool1d(zeros({1, 1, 5}), {.kernel = 2, .stride = -1});
            }),
            "[max_pool1d] kernel 2 and stride -1 must be at least 1");
}

}  // namespace
}  // namespace weft
