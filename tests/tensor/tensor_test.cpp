// Tensors: making them, views, conversions, random numbers.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/kernels.h"
#include "tensor/random.h"
#include "tensor/view.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

using Integers = std::vector<int64_t>;

TEST(Tensor, ViewsShareStorageAndKeepValues) {
  const Tensor x = arange(24).reshape({2, 3, 4});
  EXPECT_EQ(x.permute({2, 0, 1}).select(0, 1).to_vector<int64_t>(), (Integers{1, 5, 9, 13, 17, 21}));
  EXPECT_EQ(x.storage(), x.transpose(0, 2).storage());
  EXPECT_EQ(x.transpose(0, 1).reshape({6, 4}).select(0, 1).to_vector<int64_t>(), (Integers{12, 13, 14, 15}));
  EXPECT_EQ(x.narrow(1, 1, 2).select(0, -1).to_vector<int64_t>(), (Integers{16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(x.select(2, 0).unsqueeze(0).expand({2, 2, 3}).to_vector<int64_t>(),
            (Integers{0, 4, 8, 12, 16, 20, 0, 4, 8, 12, 16, 20}));
}

TEST(Tensor, ReshapeIsAViewWhereStridesAllow) {
  const Tensor x = arange(24).reshape({4, 6});
  EXPECT_EQ(x.t().reshape({2, 3, 4}).storage(), x.storage());  // splits a dimension
  EXPECT_EQ(x.narrow(1, 0, 3).reshape({2, 2, 3}).storage(), x.storage());
  EXPECT_NE(x.t().reshape({24}).storage(), x.storage());  // merges what is not adjacent
  EXPECT_EQ(x.t().reshape({24}).to_vector<int64_t>()[1], 6);
  EXPECT_EQ(x.reshape({-1, 8}).sizes(), (Shape{3, 8}));
  EXPECT_ERROR(x.reshape({5, -1}), "[reshape] [4, 6] does not fit into [5, -1]");
  EXPECT_ERROR(x.reshape({-1, -1}), "is not a shape");
}

TEST(Tensor, ViewsOutOfRangeAreRefused) {
  const Tensor x = zeros({2, 3});
  EXPECT_ERROR(x.narrow(1, 2, 2), "[narrow] [2, 2 + 2) is not inside dimension 1 of [2, 3]");
  EXPECT_ERROR(x.narrow(1, 1, std::numeric_limits<int64_t>::max()), "[narrow]");
  EXPECT_ERROR(x.select(0, 2), "index 2 is out of range for dimension 0 of [2, 3]");
  EXPECT_ERROR(x.permute({0, 0}), "names dimension 0 twice");
  EXPECT_ERROR(x.expand({2, 4}), "[2, 3] cannot become [2, 4]");
  EXPECT_ERROR(x.size(2), "dimension 2 is out of range");
  EXPECT_ERROR(x.squeeze(0), "dimension 0 of [2, 3] is not 1");
}

TEST(Tensor, SizesAreChecked) {
  EXPECT_ERROR(empty({-1}), "a size cannot be negative");
  EXPECT_ERROR(empty({int64_t{1} << 40, int64_t{1} << 40}), "more than 2^63 elements");
  EXPECT_ERROR(empty({int64_t{1} << 61}, f64), "more than 2^63 bytes");
  EXPECT_ERROR(empty({1, 1, 1, 1, 1, 1, 1, 1, 1}), "at most 8 dimensions");
  EXPECT_ERROR(from({1.0, 2.0}, {3}), "2 values do not fill [3]");
  EXPECT_EQ(zeros({0, 4}).numel(), 0);
  EXPECT_ERROR(Tensor().sizes(), "used before anything was assigned");
  EXPECT_ERROR(zeros({1}).data<double>(), "the tensor is f32, not f64");
  EXPECT_ERROR(zeros({2}).item(), "wants a tensor of one element");
}

TEST(Tensor, AbsurdSizesAreErrorsNotOverflows) {
  constexpr int64_t big = int64_t{1} << 40;
  EXPECT_ERROR(empty({big, big}), "more than 2^63 elements");
  EXPECT_ERROR(empty_channels_last({big, big, big, 1}), "more than 2^63 elements");
  EXPECT_ERROR(empty({int64_t{1} << 61}, f64), "more than 2^63 bytes");
  EXPECT_ERROR(empty({(int64_t{1} << 60) - 1}, f64), "[memory] no room for");
  EXPECT_ERROR(empty({4}).reshape({-1, big, big}), "more than 2^63 elements");
  EXPECT_EQ(empty({big, 0, big, big}).numel(), 0);
}

TEST(Tensor, ConversionsKeepExactIntegers) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(full({1}, big, i64).to_vector<int64_t>()[0], big);
  EXPECT_EQ(from({3.9, -3.9}, {2}).to(i32).to_vector<int32_t>(), (std::vector<int32_t>{3, -3}));
  EXPECT_EQ(from({0.0, -2.0}, {2}).to(boolean).to(u8).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 1}));
}

TEST(Tensor, HalvesRoundToNearestEvenAndKeepNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType half : {f16, bf16}) {
    const double step = half == f16 ? 0x1p-10 : 0x1p-7;
    const Tensor x = from({1 + step / 2, 1 + 1.5 * step, -1 - 0.51 * step, 0x1p-130, 1e30, nan}, {6}).to(half);
    const std::vector<double> y = x.to_vector<double>();
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1 + 2 * step);
    EXPECT_EQ(y[2], -1 - step);
    EXPECT_EQ(y[3], half == f16 ? 0 : 0x1p-130);
    EXPECT_EQ(y[4] == std::numeric_limits<double>::infinity(), half == f16);
    EXPECT_TRUE(std::isnan(y[5]));
  }
  EXPECT_EQ(from({0x1p-24, 0x1.8p-24, 65504.0, 65520.0}, {4}).to(f16).to_vector<double>(),
            (std::vector<double>{0x1p-24, 0x1p-23, 65504, std::numeric_limits<double>::infinity()}));
}

/// Every f16 there is, and f32 halfway between neighbours: long runs are converted by vectors, single ones are not.
TEST(Tensor, RunsOfHalfConvertAsSingleOnesDo) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 h;
    h.bits = static_cast<uint16_t>(bits);
    const auto v = static_cast<float>(h);
    values.push_back(v);
    values.push_back(v * 1.00048828125f);
  }
  const Tensor narrow = from(values, {static_cast<int64_t>(values.size())}).to(f16);
  const auto* const halves = narrow.data<Float16>();
  const std::vector<float> wide = narrow.to(f32).to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(halves[i].bits, Float16(values[i]).bits) << values[i];
    ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(static_cast<float>(halves[i]))) << values[i];
  }
}

TEST(Tensor, ChannelsLastIsALayoutNotAShape) {
  Tensor x = empty_channels_last({2, 3, 4, 5});
  x.copy_(arange(120, f32).reshape({2, 3, 4, 5}));
  EXPECT_TRUE(x.is_channels_last());
  EXPECT_FALSE(x.is_contiguous());
  EXPECT_EQ(x.data<float>()[1], 20);
  EXPECT_EQ(x.contiguous().to_vector<float>(), arange(120, f32).to_vector<float>());
  EXPECT_TRUE(empty_like(x).is_channels_last());
}

TEST(Tensor, OverlapIsSeen) {
  const Tensor x = zeros({4, 6});
  EXPECT_TRUE(raw::overlaps_itself(x.select(0, 0).unsqueeze(0).expand({3, 6})));
  EXPECT_FALSE(raw::overlaps_itself(x.t()));
  EXPECT_FALSE(raw::overlaps_itself(x.narrow(1, 1, 2)));
  EXPECT_TRUE(raw::partly_overlap(x.narrow(1, 0, 5), x.narrow(1, 1, 5)));
  EXPECT_FALSE(raw::partly_overlap(x, x));
  EXPECT_FALSE(raw::partly_overlap(x.narrow(0, 0, 2), x.narrow(0, 2, 2)));
}

TEST(Kernels, TheDeviceThatIsNotTheCpuRunsThem) {
  struct Operand {
    Device on;
    bool there = true;
    bool defined() const { return there; }
    Device device() const { return on; }
  };
  const Device gpu{DeviceType::cuda, 1};
  const Operand host{cpu}, far{gpu}, missing{gpu, false};
  using kernels::detail::device_of_call;
  EXPECT_EQ(device_of_call(host, far), gpu);  // a copy to the device
  EXPECT_EQ(device_of_call(far, host), gpu);  // and back
  EXPECT_EQ(device_of_call(host, missing, 2.5), cpu);
  EXPECT_EQ(device_of_call(std::vector<Operand>{}, std::vector{far}), gpu);
}

TEST(Random, PhiloxMatchesThePublishedVectors) {
  // Random123's known answers for philox4x32-10.
  EXPECT_EQ(philox(0, 0, 0), (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SameSeedSameNumbersAndStateResumes) {
  manual_seed(7);
  const auto first = randn({5}).to_vector<float>();
  const Philox state = default_generator().state();
  const auto second = randn({5}).to_vector<float>();
  manual_seed(7);
  EXPECT_EQ(randn({5}).to_vector<float>(), first);
  default_generator().set_state(state);
  EXPECT_EQ(randn({5}).to_vector<float>(), second);
  EXPECT_NE(first, second);
}

TEST(Random, MomentsAreRight) {
  manual_seed(11);
  for (const DType dtype : {f32, f64}) {
    double mean = 0, square = 0, low = 1, high = 0;
    const int64_t n = 200'000;
    for (double v : randn({n}, dtype).to_vector<double>()) mean += v, square += v * v;
    EXPECT_NEAR(mean / n, 0, 0.01);
    EXPECT_NEAR(square / n, 1, 0.02);
    mean = 0;
    for (double v : rand({n}, dtype).to_vector<double>()) mean += v, low = std::fmin(low, v), high = std::fmax(high, v);
    EXPECT_NEAR(mean / n, 0.5, 0.005);
    EXPECT_GE(low, 0);
    EXPECT_LT(high, 1);
  }
  std::vector<int64_t> counts(5);
  for (int64_t v : randint(-2, 3, {50'000}).to_vector<int64_t>()) ++counts.at(static_cast<size_t>(v + 2));
  for (int64_t c : counts) EXPECT_NEAR(static_cast<double>(c), 10'000, 500);
}

TEST(Random, PermutationHoldsEachOnceAndFavoursNone) {
  manual_seed(5);
  auto order = randperm(1000).to_vector<int64_t>();
  EXPECT_NE(order, arange(1000).to_vector<int64_t>());
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, arange(1000).to_vector<int64_t>());
  std::vector<int> first(4);
  for (int i = 0; i < 8000; ++i) ++first.at(static_cast<size_t>(randperm(4).to_vector<int64_t>()[0]));
  for (int c : first) EXPECT_NEAR(c, 2000, 200);
}

}  // namespace
}  // namespace weft
