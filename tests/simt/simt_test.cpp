// The emulator runs good kernels: right numbers in every order of threads and blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "tests/simt/planted.h"
#include "tests/simt/simt.h"

namespace weft::planted {
namespace {

std::vector<float> numbers(int n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i * 37 % 101) / 16.0f - 3.0f;
  return x;
}

/// Each test runs in each order.
class Simt : public testing::TestWithParam<std::pair<simt::Order, uint64_t>> {
 protected:
  Simt() : before_(simt::options()) {
    simt::options().order = GetParam().first;
    simt::options().seed = GetParam().second;
  }
  ~Simt() override { simt::options() = before_; }

 private:
  simt::Options before_;
};
INSTANTIATE_TEST_SUITE_P(Orders, Simt,
                         testing::Values(std::pair(simt::Order::forward, 1), std::pair(simt::Order::reverse, 1),
                                         std::pair(simt::Order::random, 1), std::pair(simt::Order::random, 2)));

TEST_P(Simt, EveryThreadOfEveryBlockRunsOnce) {
  for (const auto& [grid, block] : {std::pair(dim3(1), dim3(1)), std::pair(dim3(7, 3, 2), dim3(5, 4, 3)),
                                    std::pair(dim3(2), dim3(1024)), std::pair(dim3(1, 5), dim3(1, 1, 64))}) {
    std::vector<int> counts(size_t{grid.x} * grid.y * grid.z * block.x * block.y * block.z);
    coordinates(counts.data(), grid, block);
    for (const int count : counts) ASSERT_EQ(count, 1);
  }
}

TEST_P(Simt, Elementwise) {
  const auto x = numbers(1001);
  std::vector<float> y(1001);
  scale(x.data(), y.data(), 1001, 2.0f);
  cudaDeviceSynchronize();
  for (size_t i = 0; i < 1001; ++i) ASSERT_EQ(y[i], 2.0f * x[i]);
}

TEST_P(Simt, SumsOverBlocks) {
  const int n = 1000;
  const auto x = numbers(n);
  std::vector<float> sums(4), partial(16);
  block_sums(x.data(), sums.data(), n);
  cudaDeviceSynchronize();
  const float all = std::accumulate(x.begin(), x.end(), 0.0f);
  EXPECT_FLOAT_EQ(std::accumulate(sums.begin(), sums.end(), 0.0f), all);
  EXPECT_FLOAT_EQ(sums[1], std::accumulate(&x[256], &x[512], 0.0f));
  unsigned counter = 0;
  float sum = 0;
  for (int run = 0; run < 2; ++run) {
    sum_by_last_block(x.data(), partial.data(), &counter, &sum, n);
    EXPECT_FLOAT_EQ(sum, all);
    EXPECT_EQ(counter, 0u);
  }
  warp_sum(x.data(), &sum);
  EXPECT_FLOAT_EQ(sum, std::accumulate(&x[0], &x[32], 0.0f));
}

TEST_P(Simt, Softmax) {
  const int rows = 5, columns = 300;
  const auto x = numbers(rows * columns);
  std::vector<float> y(x.size());
  softmax(x.data(), y.data(), rows, columns);
  cudaDeviceSynchronize();
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += std::exp(static_cast<double>(x[static_cast<size_t>(r * columns + c)]));
    for (int c = 0; c < columns; ++c) {
      const auto i = static_cast<size_t>(r * columns + c);
      ASSERT_NEAR(y[i], std::exp(static_cast<double>(x[i])) / sum, 1e-7);
    }
  }
}

TEST_P(Simt, Transpose) {
  const int rows = 45, columns = 70;
  const auto x = numbers(rows * columns);
  std::vector<float> y(x.size());
  transpose(x.data(), y.data(), rows, columns);
  cudaDeviceSynchronize();
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      ASSERT_EQ(y[static_cast<size_t>(c * rows + r)], x[static_cast<size_t>(r * columns + c)]);
    }
  }
}

TEST_P(Simt, Atomics) {
  const int n = 500, bins = 7;
  std::vector<int> x(n), counts(bins), expected(bins);
  std::vector<float> weights(bins);
  for (int i = 0; i < n; ++i) ++expected[static_cast<size_t>(x[static_cast<size_t>(i)] = i * i % bins)];
  histogram(x.data(), counts.data(), weights.data(), n, bins);
  cudaDeviceSynchronize();
  EXPECT_EQ(counts, expected);
  for (size_t i = 0; i < weights.size(); ++i) EXPECT_EQ(weights[i], 0.5f * static_cast<float>(expected[i]));
}

TEST_P(Simt, WarpFunctions) {
  std::vector<uint64_t> results(32 * kWarpFunctions);
  warp_functions(results.data());
  const auto lane_values = [&](size_t number) { return &results[32 * number]; };
  for (uint64_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(lane_values(0)[lane], 5u);
    EXPECT_EQ(lane_values(1)[lane], lane / 8 * 8 + 1);
    EXPECT_EQ(lane_values(2)[lane], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(lane_values(3)[lane], (lane % 16 < 14 ? lane + 2 : lane) << 40);
    EXPECT_EQ(lane_values(4)[lane], lane ^ 7);
    EXPECT_EQ(lane_values(5)[lane], 0x49249249u);
    EXPECT_EQ(lane_values(6)[lane], 1u);
    EXPECT_EQ(lane_values(7)[lane], 1u);
    EXPECT_EQ(lane_values(8)[lane], 0xffull << (lane / 8 * 8));
    EXPECT_EQ(lane_values(9)[lane], 7u);
    EXPECT_EQ(lane_values(10)[lane], 1u);
    EXPECT_EQ(lane_values(11)[lane], 5u);
  }
}

TEST_P(Simt, OtherFunctions) {
  std::vector<double> results(10);
  other_functions(results.data());
  EXPECT_EQ(results, std::vector<double>({75, 3, 5, 1, 0.75, 9.25, 8, 5, 1, 7}));
}

TEST_P(Simt, ShufflesOfSixteenBytes) {
  std::vector<double2> x(32);
  for (size_t i = 0; i < 32; ++i) x[i] = {static_cast<double>(i), -static_cast<double>(i)};
  rotate(x.data());
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(x[i].x, static_cast<double>((i + 1) % 32));
    EXPECT_EQ(x[i].y, -static_cast<double>((i + 1) % 32));
  }
}

}  // namespace
}  // namespace weft::planted
