// Random fills and counting: every device draws the CPU's numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "tensor/kernels.h"
#include "tensor/view.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

using testing::test_device;
using Fill = std::function<void(Tensor&)>;

/// What `fill` makes of n elements; the memory begins `ahead` elements after an aligned place.
std::vector<double> filled(const Fill& fill, int64_t n, int64_t ahead, DType dtype, Device device) {
  Tensor part = raw::narrow(full({n + ahead + 1}, 7, {dtype, device}), 0, ahead, n);
  const Tensor memory = raw::view(part, {n + ahead + 1}, {1}, 0);
  fill(part);
  const std::vector<double> all = memory.to_vector<double>();
  if (ahead > 0) {
    EXPECT_EQ(all.front(), 7);
  }
  EXPECT_EQ(all.back(), 7);
  return part.to_vector<double>();
}

void expect_like_cpu(const Fill& fill, DType dtype, double tolerance) {
  for (const int64_t n : {0, 1, 2, 3, 4, 5, 7, 1030})
    for (const int64_t ahead : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} {} after {}", n, name(dtype), ahead));
      const std::vector<double> wanted = filled(fill, n, ahead, dtype, cpu),
                                got = filled(fill, n, ahead, dtype, test_device());
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance * std::fabs(wanted[i]));
    }
}

constexpr Philox kState{12345, (uint64_t{1} << 32) - 3};  // the counter's low word wraps on the way
constexpr DType kFloating[] = {f32, f64, bf16, f16};

TEST(RandomDevice, UniformHasTheSameBits) {
  for (const DType dtype : kFloating) {
    expect_like_cpu([](Tensor& y) { kernels::uniform(y, 0, 1, kState); }, dtype, 0);
    expect_like_cpu([](Tensor& y) { kernels::uniform(y, -0.25, 3, kState); }, dtype, dtype == f32 ? 1e-5 : 0x1p-7);
  }
}

TEST(RandomDevice, NormalHasTheSameWords) {
  for (const DType dtype : kFloating) {
    const double tolerance = dtype == f64 ? 1e-12 : dtype == f32 ? 1e-4 : 0x1p-7;
    expect_like_cpu([](Tensor& y) { kernels::normal(y, 0, 1, kState); }, dtype, tolerance);
    expect_like_cpu([](Tensor& y) { kernels::normal(y, 50, 2, kState); }, dtype, tolerance);
  }
}

TEST(RandomDevice, RandintHasTheSameValues) {
  expect_like_cpu([](Tensor& y) { kernels::randint(y, -3, 40, kState); }, i64, 0);
  expect_like_cpu([](Tensor& y) { kernels::randint(y, INT64_MIN, INT64_MAX, kState); }, i64, 0);
}

TEST(RandomDevice, ArangeCounts) {
  for (const DType dtype : {f32, f64, i32, i64, bf16, f16})
    expect_like_cpu([](Tensor& y) { kernels::arange(y, -4, 3); }, dtype, 0);
  expect_like_cpu([](Tensor& y) { kernels::arange(y, 0.5, 0.1); }, f64, 1e-15);
}

}  // namespace
}  // namespace weft
