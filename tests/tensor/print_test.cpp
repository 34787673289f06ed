// Tensors as text.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "tensor/tensor.h"

namespace weft {
namespace {

TEST(Print, ColumnsAreAligned) {
  EXPECT_EQ(from<float>({0.5F, -10.25F, 3, 4}, {2, 2}).str(),
            "[[  0.5000, -10.2500],\n"
            " [  3.0000,   4.0000]]\n"
            "[2, 2] f32 cpu");
  EXPECT_EQ(arange(4).reshape({2, 1, 2}).str(),
            "[[[0, 1]],\n"
            "\n"
            " [[2, 3]]]\n"
            "[2, 1, 2] i64 cpu");
}

TEST(Print, EachKindOfValue) {
  EXPECT_EQ(scalar(2.5, f64).str(), "2.5000\n[] f64 cpu");
  EXPECT_EQ(from<float>({1, -20}, {2}).str(), "[  1., -20.]\n[2] f32 cpu");
  EXPECT_EQ(from<float>({1e-6F, 1}, {2}).str(), "[1.0000e-06, 1.0000e+00]\n[2] f32 cpu");
  EXPECT_EQ(from<bool>({true, false}, {2}).str(), "[ true, false]\n[2] bool cpu");
  EXPECT_EQ(from<float>({std::nanf(""), -std::numeric_limits<float>::infinity(), 1.5F}, {3}).str(),
            "[   nan,   -inf, 1.5000]\n[3] f32 cpu");
  EXPECT_EQ(from<int64_t>({(int64_t{1} << 60) + 1}, {1}).str(), "[1152921504606846977]\n[1] i64 cpu");
  EXPECT_EQ(zeros({0, 3}, u8).str(), "[]\n[0, 3] u8 cpu");
  EXPECT_EQ(Tensor().str(), "undefined");
}

TEST(Print, MiddlesAreCut) {
  EXPECT_EQ(arange(1000).str(), "[  0,   1,   2, …, 997, 998, 999]\n[1000] i64 cpu");
  EXPECT_EQ(arange(24).str(),
            "[ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, …, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23]\n[24] i64 cpu");
  EXPECT_EQ(arange(10'000).reshape({100, 100}).t().str(),
            "[[   0,  100,  200, …, 9700, 9800, 9900],\n"
            " [   1,  101,  201, …, 9701, 9801, 9901],\n"
            " [   2,  102,  202, …, 9702, 9802, 9902],\n"
            " …,\n"
            " [  97,  197,  297, …, 9797, 9897, 9997],\n"
            " [  98,  198,  298, …, 9798, 9898, 9998],\n"
            " [  99,  199,  299, …, 9799, 9899, 9999]]\n"
            "[100, 100] i64 cpu");
}

TEST(Print, Streams) {
  std::ostringstream out;
  out << arange(2);
  EXPECT_EQ(out.str(), "[0, 1]\n[2] i64 cpu");
}

}  // namespace
}  // namespace weft
