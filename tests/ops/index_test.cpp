// Index ops: edges, errors, and faults from the field.
#include "autograd/ops/index.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/kernels.h"
#include "tensor/stream.h"
#include "tensor/threads.h"
#include "tensor/view.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

/// 0 + 1 + 2 + 3 on a device, by ops that want a device in order.
double sum_of_row(Device device) {
  const Tensor one_place = zeros({4}, {i64, device});
  return index_add(zeros({1}, device), 0, one_place, arange(4, {f32, device})).item();
}

TEST(Gather, OutOfRangeNamesValuePositionAndSize) {
  const Tensor x = zeros({2, 3});
  EXPECT_ERROR(gather(x, 1, from<int64_t>({0, 1, 2, 3}, {2, 2})),
               "[gather] index 3 at position [1, 1] is out of range for a dimension of size 3");
  EXPECT_ERROR(gather(x, 1, from<int64_t>({0, -1, 2, 2}, {2, 2})),
               "[gather] index -1 at position [0, 1] is out of range for a dimension of size 3");
  EXPECT_ERROR(index_select(x, 0, from<int64_t>({0, 2}, {2})),
               "[index_select] index 2 at position [1] is out of range for a dimension of size 2");
  EXPECT_ERROR(scatter_add(x, 0, full({1, 3}, 7, i64), ones({1, 3})), "index 7 at position [0, 0]");
  EXPECT_ERROR(index_add(x, 0, full({1}, std::numeric_limits<int64_t>::min(), i64), ones({1, 3})), "at position [0]");
  EXPECT_ERROR(one_hot(from<int64_t>({1, 4}, {2}), 4),
               "[one_hot] index 4 at position [1] is out of range for the classes of size 4");
}

TEST(Gather, RefusesWhatDoesNotFit) {
  const Tensor x = zeros({2, 3});
  EXPECT_ERROR(gather(x, 1, zeros({3, 1}, i64)), "an index [3, 1] does not fit [2, 3] along dimension 1");
  EXPECT_ERROR(gather(x, 1, zeros({2}, i64)), "an index [2] does not fit [2, 3]");
  EXPECT_ERROR(gather(x, 1, zeros({2, 1})), "the index must be i64 or i32, got f32");
  EXPECT_ERROR(scatter_add(x, 1, zeros({2, 1}, i64), zeros({2, 2})), "differ in shape");
  EXPECT_ERROR(scatter_add(x, 1, zeros({2, 1}, i64), zeros({2, 1}, f64)), "the tensor is f32, the source f64");
  EXPECT_ERROR(index_select(x, 1, zeros({2, 1}, i64)), "the index wants 1 dimension, got [2, 1]");
}

TEST(Gather, TakesNarrowIndicesAndEmptyOnes) {
  const Tensor x = arange(6).reshape({2, 3});
  EXPECT_EQ(gather(x, 1, from<int32_t>({2, 0}, {2, 1})).to_vector<int64_t>(), (Ints{2, 3}));
  EXPECT_EQ(gather(x, 1, zeros({2, 0}, i64)).sizes(), (Shape{2, 0}));
  EXPECT_EQ(index_select(x, 0, zeros({0}, i64)).sizes(), (Shape{0, 3}));
  EXPECT_EQ(index_add(x, 0, zeros({0}, i64), zeros({0, 3}, i64)).to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_EQ(scatter_add(x, 0, zeros({0, 3}, i64), zeros({0, 3}, i64)).to_vector<int64_t>(), x.to_vector<int64_t>());
  EXPECT_ERROR(index_select(zeros({0, 3}), 0, zeros({1}, i64)), "out of range for a dimension of size 0");
}

// tensorflow/tensorflow#124949, microsoft/onnxruntime#28107: a row whose first element lies past 2^31.
TEST(Gather, FarIntoALargeTable) {
  const int64_t width = 8960, rows = (int64_t{1} << 31) / width + 2;
  {
    Tensor table = empty({rows, width}, u8);  // pages that are never touched cost nothing
    Tensor last = raw::select(table, 0, rows - 1);
    last.copy_(arange(width).to(u8));
    const Tensor index = from<int64_t>({rows - 1}, {1});
    const Tensor row = index_select(table, 0, index);
    const Tensor wanted = arange(width).to(u8);
    EXPECT_EQ(row.to_vector<uint8_t>(), wanted.to_vector<uint8_t>());
    const Tensor column = full({1, 1}, rows - 1, i64);
    EXPECT_EQ(gather(table, 0, column.expand({1, width})).to_vector<uint8_t>(), wanted.to_vector<uint8_t>());
    const Tensor sideways = gather(table.t(), 1, full({width, 1}, rows - 1, i64));
    EXPECT_EQ(sideways.to_vector<uint8_t>(), wanted.to_vector<uint8_t>());
    Tensor line = table.reshape({rows * width});
    EXPECT_EQ(gather(line, 0, full({1}, rows * width - 1, i64)).item(), (width - 1) % 256);
  }
  memory::release_cache();
}

TEST(ScatterAdd, ManySmallValuesDoNotDisappear) {
  const int64_t n = 1 << 20;
  Tensor y = scatter_add(full({1}, 16777216.0), 0, zeros({n}, i64), ones({n}));
  EXPECT_EQ(y.item(), 16777216.0 + static_cast<double>(n));
  y = index_add(full({1}, 16777216.0), 0, zeros({n}, i64), ones({n}));
  EXPECT_EQ(y.item(), 16777216.0 + static_cast<double>(n));
}

TEST(ScatterAdd, SameBitsForAnyNumberOfThreads) {
  const Tensor index = randint(0, 50, {300, 400}), source = randn({300, 400}), x = randn({300, 50});
  const Tensor rows = randint(0, 7, {20000}), row_source = randn({20000, 48}), base = randn({7, 48});
  const int before = num_threads();
  std::vector<Floats> results;
  for (int threads : {1, 2, 3}) {
    set_num_threads(threads);
    results.push_back(scatter_add(x, 1, index, source).to_vector<float>());
    results.push_back(index_add(base, 0, rows, row_source).to_vector<float>());
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[0], results[4]);
  EXPECT_EQ(results[1], results[3]);
  EXPECT_EQ(results[1], results[5]);
}

TEST(ScatterAdd, IntegersStayExact) {
  const int64_t big = (int64_t{1} << 53) + 1;
  EXPECT_EQ(index_add(zeros({1}, i64), 0, zeros({2}, i64), full({2}, big, i64)).to_vector<int64_t>()[0], 2 * big);
  EXPECT_EQ(scatter_add(zeros({1}, i64), 0, zeros({2}, i64), full({2}, big, i64)).to_vector<int64_t>()[0], 2 * big);
}

TEST(Cat, KeepsChannelsLastAndTakesEmptyParts) {
  const Tensor a = raw::channels_last(randn({2, 3, 4, 5})), b = raw::channels_last(randn({2, 2, 4, 5}));
  const Tensor y = cat({a, b}, 1);
  EXPECT_TRUE(y.is_channels_last());
  EXPECT_EQ(y.to_vector<float>(), cat({a.contiguous(), b.contiguous()}, 1).to_vector<float>());
  EXPECT_EQ(cat({zeros({0, 3}), ones({1, 3})}).sizes(), (Shape{1, 3}));
}

TEST(Cat, RefusesPartsThatDiffer) {
  EXPECT_ERROR(cat({zeros({2, 3}), zeros({2, 4})}, 0),
               "part 0 is [2, 3], part 1 is [2, 4]: only dimension 0 may differ");
  EXPECT_ERROR(cat({zeros({2, 3}), zeros({2})}, 1), "part 1 is [2]");
  EXPECT_ERROR(cat({zeros({2}), zeros({2}, f64)}), "part 0 is f32, part 1 is f64");
  EXPECT_ERROR(cat({}), "nothing to join");
  EXPECT_ERROR(stack({zeros({2}), zeros({3})}), "[stack] part 0 is [2], part 1 is [3]");
}

TEST(Cat, OnlyWantedPartsGetGradients) {
  Tensor a = ones({2}), b = ones({2});
  b.requires_grad_();
  cat({a, b, b}).backward({.gradient = from<float>({1, 2, 3, 4, 5, 6}, {6})});
  EXPECT_FALSE(a.grad().defined());
  EXPECT_EQ(b.grad().to_vector<float>(), (Floats{8, 10}));
}

TEST(Split, LengthsAndViews) {
  const Tensor x = arange(14).reshape({7, 2});
  const std::vector<Tensor> parts = split(x, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].to_vector<int64_t>(), (Ints{12, 13}));
  EXPECT_EQ(parts[0].storage(), x.storage());
  EXPECT_EQ(chunk(x, 4).size(), 4u);
  EXPECT_EQ(chunk(x, 5).size(), 4u);  // 2 + 2 + 2 + 1
  EXPECT_EQ(split(zeros({0, 2}), 3).size(), 1u);
  EXPECT_EQ(split_sizes(x, {1, 0, 6})[1].sizes(), (Shape{0, 2}));
  EXPECT_ERROR(split_sizes(x, {1, 5}), "the lengths add up to 6, dimension 0 of [7, 2] has 7");
  EXPECT_ERROR(split(x, 0), "at least 1");
  EXPECT_TRUE(unbind(zeros({0, 2})).empty());
}

TEST(Pad, RefusesNegativeAndTooMany) {
  EXPECT_ERROR(pad(zeros({2, 3}), {{-1, 0}}), "a padding cannot be negative: (-1, 0)");
  EXPECT_ERROR(pad(zeros({2}), {{0, 0}, {0, 0}}), "2 paddings for [2]");
  EXPECT_TRUE(pad(raw::channels_last(zeros({2, 3, 4, 5})), {{1, 1}, {1, 1}}).is_channels_last());
}

TEST(MaskedFill, NothingPassesWhereCovered) {
  Tensor x = from<float>({1, kNan, 3}, {3});
  x.requires_grad_();
  const Tensor mask = from<bool>({false, true, false}, {3});
  const Tensor y = masked_fill(x, mask, -kInf);
  EXPECT_EQ(y.to_vector<float>(), (Floats{1, -kInf, 3}));
  y.backward({.gradient = from<float>({2, kNan, 4}, {3})});
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{2, 0, 4}));
  EXPECT_ERROR(masked_fill(x, zeros({3}), 0), "the mask must be bool, got f32");
  EXPECT_ERROR(masked_fill(x, zeros({2, 3}, boolean), 0), "a mask [2, 3] does not fit into [3]");
}

TEST(MaskedFill, ReusesOnlyTemporaries) {
  const Tensor x = ones({4}), mask = ones({4}, boolean);
  masked_fill(x, mask, 9);
  EXPECT_EQ(x.to_vector<float>(), (Floats{1, 1, 1, 1}));
  const Tensor y = x * 2;
  masked_fill(y.narrow(0, 0, 4), mask, 9);
  EXPECT_EQ(y.to_vector<float>(), (Floats{2, 2, 2, 2}));
  Tensor fresh = x * 2;
  const void* memory = fresh.raw_data();
  EXPECT_EQ(masked_fill(std::move(fresh), mask, 9).raw_data(), memory);
}

TEST(Topk, NanIsLargestAndEqualValuesKeepTheirOrder) {
  const Tensor x = from<float>({2, kNan, 5, 2, kInf, kNan, 5}, {7});
  EXPECT_EQ(topk(x, 5).indices.to_vector<int64_t>(), (Ints{1, 5, 4, 2, 6}));
  EXPECT_EQ(topk(x, 3, {.largest = false}).indices.to_vector<int64_t>(), (Ints{0, 3, 2}));
  EXPECT_EQ(sort(x).indices.to_vector<int64_t>(), (Ints{0, 3, 2, 6, 4, 1, 5}));
  EXPECT_EQ(sort(x, {.descending = true}).indices.to_vector<int64_t>(), (Ints{1, 5, 4, 2, 6, 0, 3}));
  EXPECT_TRUE(std::isnan(topk(x, 1).values.item()));
  EXPECT_EQ(sort(zeros({1000})).indices.to_vector<int64_t>(), arange(1000).to_vector<int64_t>());
}

TEST(Topk, EdgesAndIntegers) {
  EXPECT_ERROR(topk(zeros({2, 3}), 4), "4 values are not to be had from dimension 1 of [2, 3]");
  EXPECT_EQ(topk(zeros({2, 3}), 0).values.sizes(), (Shape{2, 0}));
  EXPECT_EQ(sort(zeros({2, 0})).values.sizes(), (Shape{2, 0}));
  const int64_t big = int64_t{1} << 60;
  EXPECT_EQ(sort(from<int64_t>({big + 1, big, -big}, {3})).values.to_vector<int64_t>(), (Ints{-big, big, big + 1}));
}

// The CPU throws at once, other devices when the host next waits for them. They go on until then, inside of their
// memory, and are as good as new afterwards.
TEST(IndexDevice, OutOfRangeNamesTheValue) {
  const Device device = testing::test_device();
  const int64_t damaged = memory::Checking::damaged();
  {
    const memory::Checking guarded;
    const auto wrong = [&](int64_t n, int64_t at, int64_t value) {
      Tensor index = zeros({n}, i64);
      index.narrow(0, at, 1).fill_(value);
      return index.to(device);
    };
    const auto expect = [&](const char* message, const std::function<Tensor()>& f) {
      EXPECT_ERROR((f(), synchronize(device)), message);
      EXPECT_EQ(sum_of_row(device), 6);
    };
    const Tensor x = ones({5, 8}, device), many = ones({70, 8}, device);
    expect("[gather] index 5 at position", [&] { return gather(x, 0, wrong(8, 3, 5).reshape({1, 8})); });
    expect("[gather] index -1 at position", [&] { return gather(x, 1, wrong(8, 3, -1).to(i32).reshape({4, 2})); });
    expect("[index_select] index 9 at position", [&] { return index_select(x, 0, wrong(3, 1, 9)); });
    expect("[index_select] index -7 at position", [&] { return index_select(x, 1, wrong(3, 2, -7)); });
    expect("[scatter_add] index 77 at position", [&] {
      return scatter_add(x, 0, wrong(8, 0, 77).reshape({1, 8}), ones({1, 8}, device));
    });
    expect("[scatter_add] index -2 at position", [&] {
      return scatter_add(x, 0, wrong(560, 555, -2).reshape({70, 8}), many);
    });
    expect("[index_add] index 5 at position", [&] { return index_add(x, 0, wrong(2, 0, 5), ones({2, 8}, device)); });
    expect("[index_add] index 1152921504606846976 at position",
           [&] { return index_add(x, 0, wrong(70, 69, int64_t{1} << 60), many); });
    expect("[one_hot] index 4 at position", [&] { return one_hot(wrong(2, 1, 4), 4); });
  }
  EXPECT_EQ(memory::Checking::damaged(), damaged) << "wrote outside of its memory";
}

TEST(IndexDevice, TheRestIsReadAndAddedAllTheSame) {
  const Device device = testing::test_device();
  if (device == cpu) GTEST_SKIP() << "the CPU throws at once";
  const Tensor x = arange(6, {f32, device}).reshape({3, 2});
  const Tensor index = from<int64_t>({2, 3, 0}, {3}, device);
  Tensor y = index_select(x, 0, index), z = index_add(x, 0, index, ones({3, 2}, device));
  EXPECT_ERROR(synchronize(device), "index 3 at position 1 is outside of a dimension [0, 3)");
  EXPECT_EQ(y.to_vector<float>(), (Floats{4, 5, 0, 0, 0, 1}));
  EXPECT_EQ(z.to_vector<float>(), (Floats{1, 2, 2, 3, 5, 6}));
}

// Many indices become 32-bit row numbers, in which 2^60 + 1 would be 1.
TEST(IndexDevice, ManyIndicesAddNothingForWrongOnes) {
  const Device device = testing::test_device();
  if (device == cpu) GTEST_SKIP() << "the CPU throws at once";
  Ints index(70, 1);
  index[0] = (int64_t{1} << 60) + 1;
  index[1] = -1;
  index[2] = 3;
  const Tensor y = index_add(zeros({3, 2}, device), 0, from(index, {70}, device), ones({70, 2}, device));
  EXPECT_ERROR(synchronize(device), "[index_add] index");
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 0, 67, 67, 0, 0}));
}

TEST(IndexDevice, WholeNumbersAndOtherDtypes) {
  const Device device = testing::test_device();
  for (const DType dtype : {i64, i32, u8}) {
    SCOPED_TRACE(name(dtype));
    const Tensor x = (arange(400) * 37).to(dtype).reshape({2, 200}), index = randint(0, 200, {2, 300});
    const Tensor rows = randint(0, 2, {90}), source = randint(0, 50, {90, 200}).to(dtype);
    const Tensor more = randint(0, 50, {2, 300}).to(dtype);
    const auto on = [&](Device d) {
      const Tensor a = x.to(d), i = index.to(d);
      return std::vector<Ints>{
          gather(a, 1, i).to_vector<int64_t>(),
          scatter_add(a, 1, i, more.to(d)).to_vector<int64_t>(),
          index_add(a, 0, rows.to(d), source.to(d)).to_vector<int64_t>(),
          index_add(a, 0, rows.narrow(0, 0, 9).to(d), source.narrow(0, 0, 9).to(d)).to_vector<int64_t>(),
          sort(a, {.descending = true}).indices.to_vector<int64_t>(),
          topk(a, 3, {.largest = false}).indices.to_vector<int64_t>(),
          masked_fill(a, gt(a, 100), 7).to_vector<int64_t>()};
    };
    EXPECT_EQ(on(device), on(cpu));
  }
}

TEST(IndexDevice, TiesAndNotANumber) {
  const Device device = testing::test_device();
  for (const DType dtype : {f32, f64, bf16, f16}) {
    // Few different values, so that most are equal; NaN of both signs, infinities, both zeros.
    Tensor x = (randint(-3, 4, {2, 700}).to(f32) * 0.5);
    x.narrow(1, 500, 9).fill_(kNan);
    x.narrow(1, 600, 9).fill_(-kNan);
    x.narrow(1, 520, 5).fill_(kInf);
    x.narrow(1, 530, 5).fill_(-kInf);
    x.narrow(1, 540, 50).fill_(-0.0);
    x = x.to(dtype);
    const Tensor y = x.to(device);
    for (const bool largest : {true, false})
      for (const int64_t k : {1, 5, 50, 700}) {
        SCOPED_TRACE(fmt::format("{} {} {}", name(dtype), largest, k));
        EXPECT_EQ(topk(y, k, {.largest = largest}).indices.to_vector<int64_t>(),
                  topk(x, k, {.largest = largest}).indices.to_vector<int64_t>());
        const Tensor line = raw::narrow(y, 1, 480, 100);
        if (k > 100) continue;
        EXPECT_EQ(topk(line, k, {.largest = largest}).indices.to_vector<int64_t>(),
                  topk(line.to(cpu), k, {.largest = largest}).indices.to_vector<int64_t>());
      }
  }
}

TEST(IndexDevice, SortsMoreTilesThanAWarpAddsUpAtOnce) {
  const Device device = testing::test_device();
  const Tensor x = randint(0, 200, {150 * 2048}).to(u8);
  EXPECT_EQ(topk(x.to(device), 20).indices.to_vector<int64_t>(), topk(x, 20).indices.to_vector<int64_t>());
}

TEST(Topk, GradientGoesToTheWinners) {
  Tensor x = from<float>({1, 4, 2, 3}, {4});
  x.requires_grad_();
  topk(x, 2).values.backward({.gradient = from<float>({10, 20}, {2})});
  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 10, 0, 20}));
}

}  // namespace
}  // namespace weft
