// Reductions at the edges: NaN, ties, no elements, long columns, layouts and threads.
#include "autograd/ops/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "tensor/threads.h"
#include "tensor/view.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

using Doubles = std::vector<double>;
using Indices = std::vector<int64_t>;

/// The gradient of f(x).sum() at x.
Tensor gradient(const Tensor& x, const std::function<Tensor(const Tensor&)>& f) {
  Tensor leaf = raw::clone(x);
  leaf.requires_grad_();
  sum(f(leaf)).backward();
  return leaf.grad();
}

// Field case 3: in float alone the sum stops growing at 2^24.
TEST(Reduce, MeanOfLongColumnsIsExact) {
  const Tensor x = ones({20'000'000, 2});
  EXPECT_EQ(mean(x, {0}).to_vector<double>(), (Doubles{1, 1}));
  EXPECT_EQ(mean(x.reshape({2, 20'000'000}), {1}).to_vector<double>(), (Doubles{1, 1}));
  EXPECT_EQ(mean(x.t(), {1}).to_vector<double>(), (Doubles{1, 1}));
  EXPECT_EQ(sum(x).item(), 40'000'000);
  EXPECT_EQ(mean(raw::narrow(x.reshape({10'000'000, 4}), 1, 1, 2), {0}).to_vector<double>(), (Doubles{1, 1}));
  const Tensor v = var(x + 3, {0}, {.correction = 0});
  EXPECT_EQ(v.to_vector<double>(), (Doubles{0, 0}));
}

TEST(Reduce, VarianceKeepsItsDigitsFarFromZero) {
  // 1e6 ± 1: squares without a shift would lose all of it in float.
  const Tensor x = from<float>({999'999, 1'000'001, 999'999, 1'000'001}, {4, 1}).expand({4, 3}).contiguous();
  EXPECT_EQ(var(x, {0}, {.correction = 0}).to_vector<double>(), (Doubles{1, 1, 1}));
  EXPECT_EQ(var(x, {}, {.correction = 0}).item(), 1);
}

TEST(Reduce, ResultsDoNotDependOnThreads) {
  const int before = num_threads();
  const Tensor flat = randn({1 << 20}), tall = randn({100'000, 12}), wide = randn({40, 5000}),
               image = randn({16, 8, 40, 40});
  const Tensor channels_last = raw::channels_last(image);
  std::vector<std::vector<Doubles>> results;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    results.push_back({sum(flat).to_vector<double>(), sum(tall, {0}).to_vector<double>(),
                       var(tall, {0}).to_vector<double>(), sum(wide, {0}).to_vector<double>(),
                       sum(wide, {1}).to_vector<double>(), mean(image, {0, 2, 3}).to_vector<double>(),
                       mean(channels_last, {0, 2, 3}).to_vector<double>(), norm(flat).to_vector<double>(),
                       max(flat).to_vector<double>(), argmax(flat).to_vector<double>()});
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(ReduceDevice, EveryLayoutGivesTheSameSums) {
  // Whole numbers: any order of adding gives the same bits.
  const Tensor x = randint(-50, 50, {3, 37, 2, 70}).to(f32).to(testing::test_device());
  const Tensor copies[] = {x, raw::channels_last(x),
                           raw::permute(raw::contiguous(raw::permute(x, {3, 1, 0, 2})), {2, 1, 3, 0})};
  const Shape all_dims[] = {{}, {0}, {1}, {2}, {3}, {0, 1}, {0, 2, 3}, {1, 2, 3}, {1, 3}, {0, 2}};
  const Tensor wide = x.to(f64);
  for (const Shape& dims : all_dims) {
    Doubles wanted(static_cast<size_t>(sum(x, dims).numel()));
    const std::vector<double> v = wide.to_vector<double>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      size_t at = 0;
      int64_t rest = i, step = 1;
      for (int64_t d = 3; d >= 0; rest /= x.sizes()[d], --d) {
        if (dims.empty() || std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
        at += static_cast<size_t>(rest % x.sizes()[d] * step);
        step *= x.sizes()[d];
      }
      wanted[at] += v[static_cast<size_t>(i)];
    }
    for (const Tensor& copy : copies)
      EXPECT_EQ(sum(copy, dims).to_vector<double>(), wanted) << str(dims) << str(copy.strides());
  }
}

TEST(ReduceDevice, ExpandedInputsCountEveryCopy) {
  const Tensor row = from<float>({1, 2, 3}, {3}, testing::test_device());
  EXPECT_EQ(sum(row.expand({4, 3})).item(), 24);
  EXPECT_EQ(sum(row.expand({4, 3}), {0}).to_vector<double>(), (Doubles{4, 8, 12}));
  EXPECT_EQ(sum(row.unsqueeze(1).expand({3, 5}), {0}).to_vector<double>(), (Doubles{6, 6, 6, 6, 6}));
}

// Wherever the best stands: in packs, in lanes, in parts, in rows and in columns.
TEST(ReduceDevice, FirstOfEqualsAndOfNansWins) {
  for (const int64_t n : {3, 130, 3000, 9000}) {
    for (const int64_t at : {int64_t{0}, n / 3, n - 1}) {
      std::vector<float> v(static_cast<size_t>(n), 1);
      for (int64_t i = at; i < n; i += 2) v[static_cast<size_t>(i)] = 7;
      Tensor x = from(v, {n}, testing::test_device());
      EXPECT_EQ(argmax(x).item(), static_cast<double>(at)) << n;
      EXPECT_EQ(argmax(x.unsqueeze(1).expand({n, 3}), 0).to_vector<int64_t>(), Indices(3, at)) << n;
      v[static_cast<size_t>(at)] = v[static_cast<size_t>(n - 1)] = kNan;
      x = from(v, {n}, testing::test_device());
      EXPECT_TRUE(std::isnan(max(x).item()));
      for (auto* op : {static_cast<Tensor (*)(const Tensor&, int64_t, bool)>(argmax),
                       static_cast<Tensor (*)(const Tensor&, int64_t, bool)>(argmin)}) {
        EXPECT_EQ(op(x, 0, false).item(), static_cast<double>(at)) << n;
        EXPECT_EQ(op(x.unsqueeze(1).expand({n, 3}), 0, false).to_vector<int64_t>(), Indices(3, at)) << n;
        EXPECT_EQ(op(x.unsqueeze(1).expand({n, 3}).contiguous(), 0, false).to_vector<int64_t>(), Indices(3, at)) << n;
      }
    }
  }
  EXPECT_EQ(argmax(full({3}, -kInf, testing::test_device())).item(), 0);
}

TEST(ReduceDevice, WholeNumbersAndTruths) {
  const Device device = testing::test_device();
  const Tensor x = full({1000, 3}, 255, {u8, device});
  EXPECT_EQ(sum(x).item(), 765'000);
  EXPECT_EQ(sum(x, {0}).to_vector<int64_t>(), (Indices{255'000, 255'000, 255'000}));
  EXPECT_EQ(sum(full({3}, int64_t{1} << 61, {i64, device})).to_vector<int64_t>(), (Indices{3 * (int64_t{1} << 61)}));
  EXPECT_EQ(sum(ne(x, 0.0), {1}).to_vector<int64_t>(), Indices(1000, 3));
  EXPECT_EQ(prod(from<int32_t>({2, 3, -7, 1}, {2, 2}, device), {1}).to_vector<int64_t>(), (Indices{6, -7}));
  EXPECT_EQ(cumsum(from<int32_t>({2, 3, -7, 1}, {2, 2}, device), 0).to_vector<int64_t>(), (Indices{2, 3, -5, 4}));
  EXPECT_EQ(cumsum(full({700}, 1, {u8, device}), 0).to_vector<int64_t>()[699], 700);
  EXPECT_EQ(min_with_index(from<int64_t>({4, 2, 8}, {3}, device), 0).values.to_vector<int64_t>(), (Indices{2}));
  const Tensor truths = ne(from<float>({0, 0, 1, 0}, {2, 2}, device), 0.0);
  EXPECT_EQ(argmax(truths, 1).to_vector<int64_t>(), (Indices{0, 0}));
  EXPECT_EQ(argmin(truths, 1).to_vector<int64_t>(), (Indices{0, 1}));
}

TEST(ReduceDevice, NoElements) {
  const Device device = testing::test_device();
  const Tensor flat = empty({0, 4}, device), deep = empty({5, 5, 0}, device);
  EXPECT_EQ(sum(deep).item(), 0);
  EXPECT_EQ(prod(deep).item(), 1);
  EXPECT_EQ(norm(deep).item(), 0);
  EXPECT_TRUE(std::isnan(mean(deep).item()));
  EXPECT_TRUE(std::isnan(var(deep).item()));
  EXPECT_EQ(any(deep).item(), 0);
  EXPECT_EQ(all(deep).item(), 1);
  EXPECT_EQ(sum(deep, {2}).to_vector<double>(), Doubles(25, 0));
  EXPECT_EQ(sum(flat, {0}).to_vector<double>(), Doubles(4, 0));
  EXPECT_EQ(sum(flat, {1}).sizes(), (Shape{0}));
  EXPECT_EQ(argmax(flat, 1).sizes(), (Shape{0}));
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{[](const Tensor& x) { return cumsum(x, 1); },
                                                                         [](const Tensor& x) { return max(x, {1}); },
                                                                         [](const Tensor& x) { return var(x, {1}); }})
    EXPECT_EQ(gradient(flat, f).sizes(), (Shape{0, 4}));
}

// 1e6 ± 1 in rows, columns and parts: squares without a shift would lose all of it in float.
TEST(ReduceDevice, VarianceKeepsItsDigitsFarFromZero) {
  for (const int64_t n : {4, 20, 600, 20'000}) {
    std::vector<float> v(static_cast<size_t>(n), 999'999);
    for (size_t i = 1; i < v.size(); i += 2) v[i] = 1'000'001;
    const Tensor x = from(v, {n}, testing::test_device());
    EXPECT_EQ(var(x, {}, {.correction = 0}).item(), 1) << n;
    EXPECT_EQ(var(x.unsqueeze(1).expand({n, 3}).contiguous(), {0}, {.correction = 0}).to_vector<double>(),
              (Doubles{1, 1, 1}))
        << n;
  }
  EXPECT_NEAR(norm(full({128}, 1e19, testing::test_device())).item() / 1.1313708e20, 1, 1e-6);
}

TEST(Reduce, WholeNumbersSumIn64Bits) {
  const Tensor x = full({1000, 3}, 255, u8);
  EXPECT_EQ(sum(x).dtype(), i64);
  EXPECT_EQ(sum(x).item(), 765'000);
  EXPECT_EQ(sum(x, {0}).to_vector<int64_t>(), (Indices{255'000, 255'000, 255'000}));
  EXPECT_EQ(sum(full({3}, int64_t{1} << 61, i64)).to_vector<int64_t>(), (Indices{3 * (int64_t{1} << 61)}));
  EXPECT_EQ(sum(ne(x, 0.0), {1}).to_vector<int64_t>(), Indices(1000, 3));
}

// Field case 5.
TEST(Reduce, NanWinsWithItsFirstIndex) {
  const Tensor x = from<float>({1, kNan, 3, kNan}, {4});
  EXPECT_TRUE(std::isnan(max(x).item()));
  EXPECT_TRUE(std::isnan(min(x).item()));
  EXPECT_EQ(argmax(x).item(), 1);
  EXPECT_EQ(argmin(x).item(), 1);
  EXPECT_EQ(argmax(full({5}, kNan)).item(), 0);
  // Wherever it stands: in the vector blocks, between them, in a later chunk, in rows and in columns.
  for (int64_t n : {3, 33, 257, 1000, 100'000}) {
    for (int64_t at : {int64_t{0}, n / 3, n / 2, n - 1}) {
      Tensor v = arange(n, f32);
      v.data<float>()[at] = kNan;
      v.data<float>()[n - 1] = kNan;
      EXPECT_EQ(argmax(v).item(), static_cast<double>(at)) << n;
      EXPECT_EQ(argmin(v).item(), static_cast<double>(at)) << n;
      EXPECT_TRUE(std::isnan(max(v).item()));
      const Tensor columns = v.unsqueeze(1).expand({n, 3});
      EXPECT_EQ(argmax(columns, 0).to_vector<int64_t>(), Indices(3, at)) << n;
      EXPECT_EQ(argmin(columns, 0).to_vector<int64_t>(), Indices(3, at)) << n;
    }
  }
}

TEST(Reduce, TheFirstOfEqualsWins) {
  for (int64_t n : {2, 40, 300, 90'000}) {
    Tensor x = full({n}, 7);
    EXPECT_EQ(argmax(x).item(), 0);
    x.data<float>()[0] = 1;
    EXPECT_EQ(argmax(x).item(), 1);
    EXPECT_EQ(argmin(x).item(), 0);
    EXPECT_EQ(argmax(x.unsqueeze(1).expand({n, 2}), 0).to_vector<int64_t>(), (Indices{1, 1}));
  }
  const Tensor all_lowest = full({3}, -kInf);
  EXPECT_EQ(max(all_lowest).item(), -kInf);
  EXPECT_EQ(argmax(all_lowest).item(), 0);
}

// Field case 6.
TEST(Reduce, TiesShareNoMoreThanTheGradient) {
  const Tensor x = from<float>({1, 3, 3, 3, 2, 0, 0, 0}, {2, 4});
  for (const Shape& dims : {Shape{}, Shape{0}, Shape{1}, Shape{0, 1}}) {
    for (auto* op : {max, min}) {
      const Tensor y = op(x, dims, false);
      EXPECT_EQ(sum(gradient(x, [&](const Tensor& v) { return op(v, dims, false); })).item(),
                static_cast<double>(y.numel()));
    }
  }
  EXPECT_EQ(gradient(x, [](const Tensor& v) { return max(v); }).to_vector<double>(), (Doubles{0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(
      gradient(from<float>({-2, 2}, {2}), [](const Tensor& v) { return norm(v, {}, {.p = kInf}); }).to_vector<double>(),
      (Doubles{-1, 0}));
}

TEST(Reduce, MaxWithIndexGivesBoth) {
  const ValueIndex best = max_with_index(from<float>({1, 5, 2, 9, 4, 3}, {2, 3}), 1, true);
  EXPECT_EQ(best.values.to_vector<double>(), (Doubles{5, 9}));
  EXPECT_EQ(best.indices.to_vector<int64_t>(), (Indices{1, 0}));
  EXPECT_EQ(best.indices.sizes(), (Shape{2, 1}));
  EXPECT_EQ(min_with_index(from<int64_t>({4, 2, 8}, {3}), 0).values.to_vector<int64_t>(), (Indices{2}));
}

// Field case 7.
TEST(Reduce, NoElements) {
  const Tensor flat = empty({0, 4}), deep = empty({5, 5, 0});
  EXPECT_EQ(max(flat, {1}).sizes(), (Shape{0}));
  EXPECT_EQ(max_with_index(flat, 1).indices.sizes(), (Shape{0}));
  EXPECT_EQ(argmax(flat, 1).sizes(), (Shape{0}));
  EXPECT_NE(error_of([&] { max(flat, {0}); }).find("[max] [0, 4] has no elements along the dimensions [0]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { max(deep); }).find("[max] [5, 5, 0] has no elements"), std::string::npos);
  EXPECT_NE(error_of([&] { argmin(deep); }).find("[argmin] [5, 5, 0] has no elements"), std::string::npos);
  EXPECT_EQ(sum(deep).item(), 0);
  EXPECT_EQ(prod(deep).item(), 1);
  EXPECT_EQ(norm(deep).item(), 0);
  EXPECT_TRUE(std::isnan(mean(deep).item()));
  EXPECT_TRUE(std::isnan(var(deep).item()));
  EXPECT_EQ(logsumexp(deep).item(), -kInf);
  EXPECT_EQ(any(deep).item(), 0);
  EXPECT_EQ(all(deep).item(), 1);
  EXPECT_EQ(sum(deep, {2}).to_vector<double>(), Doubles(25, 0));
  EXPECT_EQ(sum(flat, {0}).to_vector<double>(), Doubles(4, 0));
  EXPECT_EQ(sum(flat, {1}).sizes(), (Shape{0}));
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& x) { return cumsum(x, 1); }, [](const Tensor& x) { return max(x, {1}); },
           [](const Tensor& x) { return sum(x); }, [](const Tensor& x) { return mean(x, {0}); },
           [](const Tensor& x) { return var(x, {1}); }, [](const Tensor& x) { return norm(x); },
           [](const Tensor& x) { return logsumexp(x); }, [](const Tensor& x) { return prod(x); }})
    EXPECT_EQ(gradient(flat, f).sizes(), (Shape{0, 4}));
  EXPECT_EQ(gradient(empty({2, 0}), [](const Tensor& x) { return cumsum(x, 1); }).sizes(), (Shape{2, 0}));
}

// Field case 9, the norm.
TEST(Reduce, NormAtZeroHasNoGradient) {
  for (double p : {0.5, 1.0, 2.0, 3.0, static_cast<double>(kInf)}) {
    EXPECT_EQ(gradient(zeros({3}), [p](const Tensor& x) { return norm(x, {}, {.p = p}); }).to_vector<double>(),
              Doubles(3, 0))
        << p;
    for (double g : gradient(from<float>({0, 0, 3, 0}, {2, 2}), [p](const Tensor& x) {
                      return norm(x, {1}, {.p = p});
                    }).to_vector<double>())
      EXPECT_TRUE(std::isfinite(g)) << p;
  }
  EXPECT_EQ(gradient(ones({4}), [](const Tensor& x) { return deviation(x); }).to_vector<double>(), Doubles(4, 0));
}

// Rows of several blocks: the first of equals wins across them, and so does the first NaN.
TEST(Extreme, FirstOfEqualsInLongRows) {
  std::vector<float> row(5000, 0.5f);
  for (const size_t at : {size_t{7}, size_t{2047}, size_t{2048}, size_t{4097}, size_t{4999}}) {
    std::vector<float> x = row;
    for (size_t i = at; i < x.size(); i += 3) x[i] = 2;
    EXPECT_EQ(argmax(from(std::span<const float>(x), {5000})).item(), static_cast<double>(at));
    if (at + 2 < x.size()) x[at + 1] = x[at + 2] = std::nanf("");
    EXPECT_EQ(argmin(from(std::span<const float>(x), {5000})).item(),
              at + 2 < x.size() ? static_cast<double>(at + 1) : 0.0);
  }
}

TEST(Reduce, NormDoesNotOverflow) { EXPECT_NEAR(norm(full({128}, 1e19)).item() / 1.1313708e20, 1, 1e-6); }

TEST(Reduce, ProductHasGradientsAtZeros) {
  auto product = [](const Tensor& x) { return prod(x, {1}); };
  const Tensor x = from<float>({2, 3, 4, 0, 3, 4, 0, 0, 4}, {3, 3});
  EXPECT_EQ(gradient(x, product).to_vector<double>(), (Doubles{12, 8, 6, 12, 0, 0, 0, 0, 0}));
}

TEST(Reduce, LogSumExpStaysFinite) {
  const Tensor x = from<float>({1000, 1000, -kInf, -kInf, -kInf, 0}, {3, 2});
  const Doubles y = logsumexp(x, {1}).to_vector<double>();
  EXPECT_NEAR(y[0], 1000 + std::log(2.0), 1e-4);
  EXPECT_EQ(y[1], -kInf);
  EXPECT_EQ(y[2], 0);
  const Doubles g = gradient(x, [](const Tensor& v) { return logsumexp(v, {1}); }).to_vector<double>();
  EXPECT_NEAR(g[0], 0.5, 1e-4);  // 1000 + ln 2 has no more digits in float
  EXPECT_EQ((Doubles{g.begin() + 2, g.end()}), (Doubles{0, 0, 0, 1}));
}

TEST(Reduce, MistakesAreNamed) {
  const Tensor x = ones({2, 3});
  EXPECT_NE(error_of([&] { sum(x, {2}); }).find("[sum] dimension 2 is out of range"), std::string::npos);
  EXPECT_NE(error_of([&] { sum(x, {1, -1}); }).find("[sum] the dimensions [1, -1] name 1 twice"), std::string::npos);
  EXPECT_NE(error_of([&] { mean(ones({2}, i64)); }).find("[mean] wants a floating dtype, got i64"), std::string::npos);
  EXPECT_NE(error_of([&] { norm(x, {}, {.p = 0}); }).find("[norm] p must be above 0"), std::string::npos);
}

}  // namespace
}  // namespace weft
