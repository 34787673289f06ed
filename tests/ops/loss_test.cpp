// Losses: labels that do not count or do not exist, extreme scores, shapes, means over unequal batches.
#include "autograd/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "tensor/stream.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

using Values = std::vector<double>;

Tensor leaf(Tensor x) { return x.requires_grad_(); }

TEST(Loss, LabelOutsideOfTheClassesThrows) {
  const Tensor x = zeros({3, 5});
  EXPECT_EQ(error_of([&] {
              cross_entropy(x, from<int64_t>({0, -1, -4}, {3}), {.ignore_index = -1, .reduction = Reduction::none});
            }),
            "[cross_entropy] label -4 at [2] is outside of the classes [0, 5) and is not ignore_index, -1");
  EXPECT_EQ(error_of([&] {
              cross_entropy(zeros({2, 5, 3}), from<int32_t>({0, 1, 2, 3, 5, 4}, {2, 3}));
            }),
            "[cross_entropy] label 5 at [1, 1] is outside of the classes [0, 5) and is not ignore_index, -100");
  EXPECT_EQ(error_of([&] {
              nll_loss(x, from<int64_t>({0, 1, 7}, {3}));
            }),
            "[nll_loss] label 7 at [2] is outside of the classes [0, 5) and is not ignore_index, -100");
}

// Other devices than the CPU say so when the host next waits for them; until then the row counts nothing.
TEST(LossDevice, LabelOutsideOfTheClassesIsReported) {
  const Device device = testing::test_device();
  const int64_t damaged = memory::Checking::damaged();
  for (const Reduction reduction : {Reduction::none, Reduction::sum})
    for (const int64_t classes : {5, 8, 1500})
      for (const int64_t label : {classes, int64_t{-1}, int64_t{1} << 40}) {
        SCOPED_TRACE(fmt::format("{} of {}", label, classes));
        const memory::Checking guarded;
        const Tensor target = from<int64_t>({0, label, -100, 4}, {4}, device);
        for (const bool logits : {true, false}) {
          Tensor x = zeros({4, classes}, device);
          x.requires_grad_();
          const auto step = [&] {
            const Tensor y = logits ? cross_entropy(x, target, {.reduction = reduction})
                                    : nll_loss(x, target, {.reduction = reduction});
            y.backward({.gradient = ones(y.sizes(), device)});
          };
          EXPECT_ERROR((step(), synchronize(device)),
                       fmt::format("[{}] label {} at ", logits ? "cross_entropy" : "nll_loss", label));
          if (device == cpu) continue;
          EXPECT_EQ(x.grad().select(0, 1).to_vector<double>(), Values(static_cast<size_t>(classes), 0));
          EXPECT_LT(x.grad().select(0, 3).to_vector<double>()[4], -0.7);
        }
      }
  EXPECT_EQ(memory::Checking::damaged(), damaged) << "wrote outside of its memory";
}

TEST(LossDevice, ScoresOfNoProbabilityAndExtremeOnes) {
  const Device device = testing::test_device();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  // Classes that are masked out come first, alone in a thread's part of the row, and last.
  for (const int64_t classes : {7, 64, 2052}) {
    Tensor x = full({2, classes}, -kInf);
    x.narrow(1, classes - 3, 2).fill_(1e4);
    x = leaf(x.to(device));
    const Tensor target = full({2}, classes - 3, {i64, device});
    const Tensor y = cross_entropy(x, target, {.reduction = Reduction::none});
    for (const double v : y.to_vector<double>()) EXPECT_NEAR(v, std::log(2), 1e-6);
    y.backward({.gradient = ones({2}, device)});
    Values wanted(static_cast<size_t>(classes), 0);
    wanted[wanted.size() - 3] = -0.5;
    wanted[wanted.size() - 2] = 0.5;
    EXPECT_EQ(x.grad().select(0, 1).to_vector<double>(), wanted);
  }
  // What is not a number stays so.
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInf}) {
    Tensor x = zeros({1, 40});
    x.narrow(1, 17, 1).fill_(bad);
    EXPECT_TRUE(std::isnan(cross_entropy(x.to(device), zeros({1}, {i64, device})).item()));
  }
}

TEST(LossDevice, NothingCountsAndNothingIsThere) {
  const Device device = testing::test_device();
  const Tensor ignored = full({3}, -100, {DType::i64, device});
  for (const bool logits : {true, false}) {
    const Tensor x = leaf(randn({3, 4}, device));
    const Tensor y = logits ? cross_entropy(x, ignored, {.label_smoothing = 0.1}) : nll_loss(x, ignored);
    EXPECT_EQ(y.item(), 0);
    y.backward();
    EXPECT_EQ(x.grad().to_vector<double>(), Values(12, 0));
    const Tensor none = leaf(zeros({0, 4}, device)), no_labels = zeros({0}, {DType::i64, device});
    const Tensor z = logits ? cross_entropy(none, no_labels) : nll_loss(none, no_labels);
    EXPECT_EQ(z.item(), 0);
    z.backward();
    EXPECT_EQ(none.grad().sizes(), (Shape{0, 4}));
  }
}

TEST(Loss, IgnoredRowsAreExactlyZero) {
  const Tensor x = leaf(randn({4, 5}));
  const Tensor target = from<int64_t>({255, 1, 255, 4}, {4});
  const Tensor y = cross_entropy(x, target, {.ignore_index = 255, .reduction = Reduction::none});
  const Values v = y.to_vector<double>();
  EXPECT_TRUE(v[0] == 0 && v[2] == 0 && v[1] > 0 && v[3] > 0);
  backward({y}, {ones_like(y)});
  const Values g = x.grad().to_vector<double>();
  for (size_t c = 0; c < 5; ++c) EXPECT_TRUE(g[c] == 0 && g[10 + c] == 0 && g[5 + c] != 0);
}

TEST(Loss, EveryLabelIgnoredGivesZeroAndNoGradient) {
  const Tensor target = full({3}, -100, DType::i64);
  for (const bool logits : {true, false}) {
    const Tensor x = leaf(randn({3, 4}));
    const Tensor y = logits ? cross_entropy(x, target, {.label_smoothing = 0.1}) : nll_loss(x, target);
    EXPECT_EQ(y.item(), 0);
    y.backward();
    EXPECT_EQ(x.grad().to_vector<double>(), Values(12, 0));
  }
  EXPECT_EQ(cross_entropy(zeros({0, 4}), zeros({0}, DType::i64)).item(), 0);
}

TEST(Loss, ShapesMustBeEqual) {
  const Tensor a = zeros({3}), b = zeros({3, 1});
  EXPECT_EQ(error_of([&] { mse_loss(a, b); }),
            "[mse_loss] the input is [3] but the target [3, 1]: losses do not broadcast, make the shapes equal");
  EXPECT_THROW(l1_loss(zeros({100, 1}), zeros({100})), Error);
  EXPECT_THROW(huber_loss(a, b), Error);
  EXPECT_THROW(bce_with_logits(b, a), Error);
  EXPECT_THROW(mse_loss(zeros({10, 500, 80}), zeros({10, 80, 500})), Error);
  EXPECT_EQ(error_of([] {
              cross_entropy(zeros({4, 5, 2}), zeros({4, 5}, DType::i64));
            }),
            "[cross_entropy] scores [4, 5, 2] want labels [4, 2], got [4, 5]");
  EXPECT_THROW(cross_entropy(zeros({4, 5}), zeros({4})), Error);
  EXPECT_THROW(cross_entropy(zeros({4, 5}), zeros({4}, DType::i64), {.weight = ones({4})}), Error);
}

TEST(Loss, ExtremeScoresStayFinite) {
  const Tensor x = leaf(from<float>({1e4f, -1e4f, 0, 88, 90, 1e30f}, {2, 3}));
  const Tensor y = cross_entropy(x, from<int64_t>({1, 2}, {2}), {.reduction = Reduction::none});
  EXPECT_EQ(y.to_vector<double>(), (Values{2e4, 0}));
  backward({y}, {ones_like(y)});
  EXPECT_EQ(x.grad().to_vector<double>(), (Values{1, -1, 0, 0, 0, 0}));
  const Tensor z = leaf(from<float>({-1e4f, 1e4f, 0}, {3}));
  const Tensor b = bce_with_logits(z, from<float>({1, 1, 0}, {3}), {.reduction = Reduction::none});
  EXPECT_FLOAT_EQ(static_cast<float>(b.to_vector<double>()[0]), 1e4f);
  EXPECT_EQ(b.to_vector<double>()[1], 0);
  backward({b}, {ones_like(b)});
  EXPECT_EQ(z.grad().to_vector<double>(), (Values{-1, 0, 0.5}));
}

/// Gradient of the weights of a scorer over tokens [first, first + count) of the data.
void accumulate(const Tensor& weight, const Tensor& tokens, const Tensor& labels, int64_t first, int64_t count,
                int64_t total) {
  const Tensor scores = tokens.narrow(0, first, count) * weight;
  (cross_entropy(scores, labels.narrow(0, first, count), {.reduction = Reduction::sum}) / static_cast<double>(total))
      .backward();
}

TEST(Loss, SumAndCountOverUnequalBatchesIsTheMeanOverAll) {
  const Tensor tokens = randn({100, 6}, f64), labels = randint(0, 6, {100});
  const Tensor whole = leaf(ones({6}, f64)), parts = leaf(ones({6}, f64)), means = leaf(ones({6}, f64));
  cross_entropy(tokens * whole, labels).backward();
  // Micro-batches of 3, 97 and no valid tokens; the total is counted first and divides each sum.
  accumulate(parts, tokens, labels, 0, 3, 100);
  accumulate(parts, tokens, labels, 3, 97, 100);
  (cross_entropy(tokens * parts, full({100}, -100, DType::i64), {.reduction = Reduction::sum}) / 100).backward();
  const Values wanted = whole.grad().to_vector<double>(), got = parts.grad().to_vector<double>();
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12);
  // The mean of means is something else.
  accumulate(means, tokens, labels, 0, 3, 2 * 3);
  accumulate(means, tokens, labels, 3, 97, 2 * 97);
  double apart = 0;
  for (size_t i = 0; i < 6; ++i) apart += std::fabs(means.grad().to_vector<double>()[i] - wanted[i]);
  EXPECT_GT(apart, 1e-3);
}

TEST(Loss, MeanOfManyRowsIsExact) {
  const Tensor y = mse_loss(full({1 << 22}, 0.1f), zeros({1 << 22}));
  EXPECT_NEAR(y.item(), 0.01, 1e-8);
  EXPECT_NEAR(cross_entropy(zeros({300'000, 2}), zeros({300'000}, DType::i64)).item(), std::log(2), 1e-7);
}

}  // namespace
}  // namespace weft
