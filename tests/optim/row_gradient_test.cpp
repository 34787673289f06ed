// Row gradients of embeddings: the same numbers as whole gradients, for the rows that are named, and optimizers that
// step those alone.
#include "autograd/row_gradient.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/index.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/optimizers.h"
#include "optim/sgd.h"
#include "tensor/random.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using testing::test_device;

constexpr int64_t kRows = 11, kWidth = 20;

Tensor ids() { return from<int32_t>({3, 0, 3, 7, 10, 3, 0, 7, 1}, {3, 3}, test_device()); }
Tensor table() { return testing::values({kRows, kWidth}, f32, 1, 0).to(test_device()); }
Tensor upstream(int64_t step = 0) { return testing::values({3, 3, kWidth}, f32, 2, step).to(test_device()); }

/// Row by row, without what stands for no row.
std::vector<int64_t> named(const RowGradient& g) {
  std::vector<int64_t> rows = g.rows.to_vector<int64_t>();
  std::erase(rows, kRows);
  return rows;
}

void look_up(const Tensor& weight, bool sparse, int64_t step = 0, int64_t padding = -1) {
  embedding(weight, ids(), padding, sparse).backward({.gradient = upstream(step)});
}

TEST(RowGradientDevice, HasTheRowsOfTheWholeGradient) {
  for (const int64_t padding : {int64_t{-1}, int64_t{3}}) {
    Tensor a = table().requires_grad_(), b = table().requires_grad_();
    look_up(a, false, 0, padding);
    look_up(b, true, 0, padding);
    EXPECT_FALSE(b.grad().defined());
    const RowGradient g = row_gradient(b);
    ASSERT_TRUE(g.defined());
    const auto wanted = padding < 0 ? std::vector<int64_t>{0, 1, 3, 7, 10} : std::vector<int64_t>{0, 1, 7, 10};
    EXPECT_EQ(named(g), wanted);
    const std::vector<float> whole = a.grad().to_vector<float>(), values = g.values.to_vector<float>();
    for (size_t k = 0; k < wanted.size(); ++k)
      for (size_t c = 0; c < kWidth; ++c)
        EXPECT_EQ(values[k * kWidth + c], whole[static_cast<size_t>(wanted[k]) * kWidth + c]) << k << ", " << c;
    for (size_t i = wanted.size() * kWidth; i < values.size(); ++i) EXPECT_EQ(values[i], 0);
  }
}

TEST(RowGradientDevice, GathersOverPassesAndUses) {
  Tensor a = table().requires_grad_(), b = table().requires_grad_();
  const Tensor other = from<int64_t>({1, 5}, {2}, test_device());
  for (const bool sparse : {false, true}) {
    const Tensor& weight = sparse ? b : a;
    look_up(weight, sparse, 0);
    (sum(embedding(weight, other, -1, sparse)) + sum(embedding(weight, ids(), -1, sparse))).backward();
  }
  EXPECT_EQ(named(row_gradient(b)), (std::vector<int64_t>{0, 1, 3, 5, 7, 10}));
  Tensor whole = zeros({kRows + 1, kWidth}, test_device());
  whole = index_add(whole, 0, row_gradient(b).rows, row_gradient(b).values);
  EXPECT_LT(max(abs(whole.narrow(0, 0, kRows) - a.grad())).item(), 1e-6);
}

// An embedding that is the output layer too: its gradient is whole.
TEST(RowGradientDevice, AWholeGradientTakesTheRowsIn) {
  Tensor a = table().requires_grad_(), b = table().requires_grad_();
  for (const bool sparse : {false, true}) {
    const Tensor& weight = sparse ? b : a;
    sum(linear(embedding(weight, ids(), -1, sparse), weight)).backward();
    look_up(weight, sparse, 1);
  }
  EXPECT_FALSE(row_gradient(b).defined());
  EXPECT_LT(max(abs(b.grad() - a.grad())).item(), 1e-4);
}

TEST(RowGradientDevice, PlainSgdStepsAsWithTheWholeGradient) {
  std::vector<Named> a{testing::parameter("w", table())}, b{testing::parameter("w", table())};
  optim::SGD dense(a, {.lr = 0.1}), lazy(b, {.lr = 0.1});
  for (int64_t step = 0; step < 3; ++step) {
    dense.zero_grad();
    lazy.zero_grad();
    look_up(a[0].value, false, step);
    look_up(b[0].value, true, step);
    dense.step();
    lazy.step();
  }
  EXPECT_EQ(a[0].value.to_vector<float>(), b[0].value.to_vector<float>());
}

// The named rows are stepped as if they were all; the others and their state stay as they are.
TEST(RowGradientDevice, EveryOptimizerStepsNamedRowsAlone) {
  const Tensor rows = from<int64_t>({0, 1, 3, 7, 10}, {5}, test_device());
  for (const optim::Entry& entry : optim::table()) {
    SCOPED_TRACE(entry.name);
    const Tensor start = table();
    std::vector<Named> all{testing::parameter("w", start)}, few{testing::parameter("w", index_select(start, 0, rows))};
    const auto a = entry.make(all), b = entry.make(few);
    for (int64_t step = 0; step < 3; ++step) {
      a->zero_grad();
      look_up(all[0].value, true, step);
      few[0].value.set_grad(row_gradient(all[0].value).values.narrow(0, 0, 5).clone());
      a->step();
      b->step();
    }
    EXPECT_EQ(index_select(all[0].value, 0, rows).to_vector<float>(), few[0].value.to_vector<float>());
    for (const int64_t row : {2, 4, 5, 6, 8, 9})
      EXPECT_EQ(all[0].value.select(0, row).to_vector<float>(), start.select(0, row).to_vector<float>()) << row;
  }
}

TEST(RowGradientDevice, CountsInTheNormAndIsClipped) {
  std::vector<Named> a{testing::parameter("w", table())}, b{testing::parameter("w", table())};
  look_up(a[0].value, false);
  look_up(b[0].value, true);
  const double norm = optim::clip_grad_norm(a, 0.5);
  EXPECT_NEAR(optim::clip_grad_norm(b, 0.5), norm, 1e-12 * norm);
  EXPECT_NEAR(std::sqrt(sum(square(row_gradient(b[0].value).values)).item()), 0.5, 1e-4);
  optim::AdamW adam(b, {.lr = 0.1});
  adam.step({.max_norm = 0.1});
  adam.zero_grad();
  EXPECT_FALSE(row_gradient(b[0].value).defined());
}

TEST(RowGradientDevice, NoIdsLeaveNoRows) {
  std::vector<Named> p{testing::parameter("w", table())};
  embedding(p[0].value, zeros({0}, {i64, test_device()}), -1, true)
      .backward({.gradient = zeros({0, kWidth}, test_device())});
  EXPECT_TRUE(named(row_gradient(p[0].value)).empty());
  optim::Adam adam(p);
  adam.step();
  EXPECT_EQ(p[0].value.to_vector<float>(), table().to_vector<float>());
}

TEST(RowGradientDevice, AHookSeesAWholeGradient) {
  Tensor weight = table().requires_grad_();
  register_hook(weight, [](const Tensor& dy) { return dy * 2.0; });
  look_up(weight, true);
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(row_gradient(weight).defined());
}

TEST(RowGradientDevice, ReadyHooksAreCalledForRows) {
  Tensor weight = table().requires_grad_();
  int calls = 0;
  register_ready_hook(weight, [&](Tensor& grad) {
    ++calls;
    EXPECT_FALSE(grad.defined());
    EXPECT_TRUE(row_gradient(weight).defined());
  });
  look_up(weight, true);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace weft
