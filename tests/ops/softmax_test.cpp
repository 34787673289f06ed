// Softmax at the edges: infinities, NaN, large values, no elements.
#include "autograd/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/view.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

using Doubles = std::vector<double>;

bool all_nan(const Tensor& x) { return all(ne(x, x)).item() != 0; }
bool all_finite(const Tensor& x) { return all(lt(abs(x), kInf)).item() != 0; }

// Field case 8: our choice is NaN in the row that has no finite maximum, and in no other.
TEST(Softmax, RowOfMinusInfinityIsNanAlone) {
  for (int64_t n : {3, 100}) {
    for (int64_t dim : {1, 0}) {
      for (auto* op : {softmax, log_softmax}) {
        Tensor rows = randn({2, n});
        raw::select(rows, 0, 1).fill_(-kInf);
        const Tensor x = dim == 1 ? rows : raw::contiguous(raw::transpose(rows, 0, 1));
        Tensor leaf = raw::clone(x);
        leaf.requires_grad_();
        const Tensor y = op(leaf, dim);
        EXPECT_TRUE(all_finite(raw::select(y.detach(), 1 - dim, 0)));
        EXPECT_TRUE(all_nan(raw::select(y.detach(), 1 - dim, 1)));
        sum(y.select(1 - dim, 0) * y.select(1 - dim, 0)).backward();
        EXPECT_TRUE(all_finite(raw::select(leaf.grad(), 1 - dim, 0)));
        EXPECT_GT(norm(raw::select(leaf.grad(), 1 - dim, 0)).item(), 0);
      }
    }
  }
}

TEST(Softmax, MaskedElementsAreZero) {
  const Tensor x = from<float>({0, -kInf, 0, -kInf}, {1, 4});
  EXPECT_EQ(softmax(x).to_vector<double>(), (Doubles{0.5, 0, 0.5, 0}));
  EXPECT_EQ(log_softmax(x).to_vector<double>()[1], -kInf);
  Tensor leaf = raw::clone(x);
  leaf.requires_grad_();
  sum(log_softmax(leaf).narrow(1, 0, 1)).backward();
  EXPECT_EQ(leaf.grad().to_vector<double>(), (Doubles{0.5, 0, -0.5, 0}));
}

TEST(Softmax, NanAndInfinityStayInTheirRow) {
  for (float bad : {kNan, kInf}) {
    for (int64_t at : {0, 40, 99}) {
      Tensor x = randn({3, 100});
      x.data<float>()[100 + at] = bad;
      for (auto* op : {softmax, log_softmax}) {
        const Tensor y = op(x, 1);
        EXPECT_TRUE(all_finite(raw::select(y, 0, 0)) && all_finite(raw::select(y, 0, 2)));
        EXPECT_TRUE(std::isnan(raw::select(raw::select(y, 0, 1), 0, at).item()));
        EXPECT_TRUE(!std::isnan(bad) || all_nan(raw::select(y, 0, 1)));
      }
    }
  }
}

// In rows that are held and rows that are not, and in columns.
TEST(SoftmaxDevice, InfinityAndNanStayInTheirRow) {
  for (const int64_t n : {7, 100, 3001}) {
    for (const float bad : {kNan, kInf, -kInf}) {
      std::vector<float> v(static_cast<size_t>(3 * n));
      for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 13) / 3;
      for (int64_t i = n; i < 2 * n; ++i)
        if (bad == -kInf || i == n + n / 2) v[static_cast<size_t>(i)] = bad;  // all of the row, or one
      v[1] = -kInf;
      const Tensor rows = from(v, {3, n}, testing::test_device());
      for (auto* op : {softmax, log_softmax}) {
        for (const int64_t dim : {1, 0}) {
          const Tensor y = dim == 1 ? op(rows, 1) : op(raw::contiguous(raw::transpose(rows, 0, 1)), 0);
          EXPECT_TRUE(all_finite(exp(raw::select(y, 1 - dim, 0))) && all_finite(exp(raw::select(y, 1 - dim, 2)))) << n;
          EXPECT_TRUE(all_nan(raw::select(y, 1 - dim, 1))) << n << ' ' << bad;
        }
      }
    }
  }
}

TEST(Softmax, LargeValuesDoNotOverflow) {
  const Tensor x = from<float>({1e4f, 1e4f, -1e4f}, {3});
  EXPECT_EQ(softmax(x).to_vector<double>(), (Doubles{0.5, 0.5, 0}));
  EXPECT_NEAR(log_softmax(x).to_vector<double>()[2], -20000.693, 1e-2);
}

TEST(Softmax, OneElementAndNone) {
  EXPECT_EQ(softmax(ones({2, 1})).to_vector<double>(), (Doubles{1, 1}));
  EXPECT_EQ(log_softmax(ones({2, 1})).to_vector<double>(), (Doubles{0, 0}));
  for (const Shape& sizes : {Shape{0, 3}, Shape{3, 0}}) {
    Tensor x = empty(sizes);
    x.requires_grad_();
    sum(softmax(x)).backward();
    EXPECT_EQ(x.grad().sizes(), sizes);
  }
  EXPECT_THROW(softmax(ones({2}, i64)), Error);
  EXPECT_THROW(softmax(ones({2, 2}), 2), Error);
}

}  // namespace
}  // namespace weft
