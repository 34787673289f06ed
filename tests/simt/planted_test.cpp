// The checkers are checked: every planted mistake is reported in the right words, by the emulator in every build, by
// AddressSanitizer or ThreadSanitizer in theirs, and the same kernel without the mistake is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/simt/planted.h"
#include "tests/simt/sanitizer_test.h"
#include "tests/simt/simt.h"

namespace weft::planted {
namespace {

/// The message of the simt::Error that f throws.
std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const simt::Error& error) {
    return error.what();
  }
  return "no error";
}

#define EXPECT_SAYS(statement, part)                                                  \
  do {                                                                                \
    const std::string said = error_of([&] { statement; });                            \
    EXPECT_NE(said.find(part), std::string::npos) << #statement << " said: " << said; \
  } while (false)

// ---- found by the emulator itself ----
TEST(Planted, DivergentBarrier) {
  std::vector<float> y(64);
  EXPECT_SAYS(
      divergent_barrier(y.data(), false),
      "divergent_barrier_kernel: deadlock: thread (0,0,0) of block (0,0,0) waits at __syncthreads, planted.cu:");
  EXPECT_SAYS(divergent_barrier(y.data(), false), "but thread (32,0,0) waits at __syncthreads, planted.cu:");
  EXPECT_SAYS(divergent_barrier(y.data(), true), "no error");
}

TEST(Planted, EarlyReturn) {
  std::vector<float> y(64);
  EXPECT_SAYS(early_return(y.data(), 40, false), "divergent barrier: thread (0,0,0) of block (0,0,0) waits");
  EXPECT_SAYS(early_return(y.data(), 40, false), "but thread (40,0,0) has returned");
  EXPECT_SAYS(early_return(y.data(), 40, true), "no error");
}

TEST(Planted, WrongMask) {
  std::vector<float> y(64);
  EXPECT_SAYS(wrong_mask(y.data(), false), "waits at __shfl_xor_sync, planted.cu:");
  EXPECT_SAYS(wrong_mask(y.data(), false), "has returned");
  EXPECT_SAYS(wrong_mask(y.data(), true), "no error");
  EXPECT_SAYS(lane_outside_mask(y.data(), false), "reads lane 20 by __shfl_sync");
  EXPECT_SAYS(lane_outside_mask(y.data(), true), "no error");
}

TEST(Planted, PartialWarp) {
  std::vector<float> y(64);
  EXPECT_SAYS(partial_warp(y.data(), false), "thread (32,0,0) of block (0,0,0) calls __shfl_down_sync, planted.cu:");
  EXPECT_SAYS(partial_warp(y.data(), false), "with lane 16 in the mask, which the block does not have");
  EXPECT_SAYS(partial_warp(y.data(), true), "no error");
}

TEST(Planted, Configuration) {
  EXPECT_SAYS(configure(dim3(0), dim3(32), 0), "nothing_kernel: a grid has 1 to 2147483647 x 65535 x 65535 blocks");
  EXPECT_SAYS(configure(dim3(1, 65536), dim3(32), 0), "not (1,65536,1)");
  EXPECT_SAYS(configure(dim3(1), dim3(1025), 0), "a block has 1 to 1024 threads");
  EXPECT_SAYS(configure(dim3(1), dim3(33, 32), 0), "not (33,32,1)");
  EXPECT_SAYS(configure(dim3(1), dim3(0), 0), "not (0,1,1)");
  EXPECT_SAYS(configure(dim3(1), dim3(1, 1, 65), 0), "at most 64 of them deep");
  EXPECT_SAYS(configure(dim3(1), dim3(32), 227 * 1024 + 1),
              "at most 232448 bytes of dynamic shared memory, not 232449");
  EXPECT_SAYS(configure(dim3(1), dim3(32), 227 * 1024), "no error");
}

TEST(Planted, TrapAndException) {
  EXPECT_SAYS(trap(false), "thread (3,0,0) of block (0,0,0) trapped, planted.cu:");
  EXPECT_SAYS(trap(true), "no error");
  EXPECT_THROW(throwing(false), std::runtime_error);
  EXPECT_NO_THROW(throwing(true));
}

TEST(Planted, ErrorsLeaveTheEmulatorUsable) {
  std::vector<float> y(64);
  for (int i = 0; i < 3; ++i) {
    EXPECT_SAYS(divergent_barrier(y.data(), false), "deadlock");
    EXPECT_SAYS(wrong_mask(y.data(), false), "__shfl_xor_sync");
    EXPECT_SAYS(trap(false), "trapped");
    EXPECT_SAYS(early_return(y.data(), 64, true), "no error");
  }
}

/// The first and the second block each leave out one number, and must not find what another block or kernel left.
TEST(Planted, UninitialisedSharedMemoryIsNaN) {
  std::vector<float> y(128);
  for (const auto& kernel : {uninitialised_static, uninitialised_template, uninitialised_dynamic}) {
    kernel(y.data(), true);
    for (const float value : y) EXPECT_EQ(value, 1.0f);
    kernel(y.data(), false);
    EXPECT_TRUE(std::isnan(y[0])) << y[0];
    EXPECT_TRUE(std::isnan(y[65])) << y[65];
    EXPECT_EQ(std::count_if(y.begin(), y.end(), [](float value) { return std::isnan(value); }), 2);
  }
}

TEST(Planted, WriteBehindDynamicSharedMemory) {
  if (kAddressSanitizer) GTEST_SKIP() << "skipped: AddressSanitizer sees the write before the emulator does";
  EXPECT_SAYS(write_behind_dynamic(false), "block (0,0,0) wrote behind its 256 bytes of dynamic shared memory");
  EXPECT_SAYS(write_behind_dynamic(true), "no error");
}

// ---- found by AddressSanitizer and UndefinedBehaviorSanitizer ----
void run_out_of_bounds_global(bool fixed) {
  const std::vector<float> x(100);
  std::vector<float> y(100);
  out_of_bounds_global(x.data(), y.data(), 100, fixed);
}
TEST(Planted, OutOfBoundsGlobal) { EXPECT_ADDRESS_SANITIZER(run_out_of_bounds_global, "heap-buffer-overflow"); }

void run_out_of_bounds_device(bool fixed) {
  void *x = nullptr, *y = nullptr;
  cudaMalloc(&x, 400);
  cudaMalloc(&y, 400);
  out_of_bounds_global(static_cast<float*>(x), static_cast<float*>(y), 100, fixed);
  cudaFree(x);
  cudaFree(y);
}
TEST(Planted, OutOfBoundsInDeviceMemory) { EXPECT_ADDRESS_SANITIZER(run_out_of_bounds_device, "heap-buffer-overflow"); }

void run_out_of_bounds_static(bool fixed) {
  std::vector<float> y(64);
  out_of_bounds_static(y.data(), fixed);
}
TEST(Planted, OutOfBoundsStatic) { EXPECT_ADDRESS_SANITIZER(run_out_of_bounds_static, "insufficient space"); }

void run_out_of_bounds_dynamic(bool fixed) {
  std::vector<float> y(64);
  out_of_bounds_dynamic(y.data(), fixed);
}
TEST(Planted, OutOfBoundsDynamic) { EXPECT_ADDRESS_SANITIZER(run_out_of_bounds_dynamic, "use-after-poison"); }

void run_misaligned_vector(bool fixed) {
  const std::vector<float> x(20);
  std::vector<float> y(4);
  misaligned_vector(x.data(), y.data(), fixed);
}
TEST(Planted, MisalignedVector) { EXPECT_ADDRESS_SANITIZER(run_misaligned_vector, "misaligned address"); }

// ---- found by ThreadSanitizer ----
template <void (*kernel)(const float*, float*, bool)>
void run_race(bool fixed) {
  const std::vector<float> x(64);
  std::vector<float> y(64);
  kernel(x.data(), y.data(), fixed);
}
TEST(Planted, RaceWithoutBarrier) { EXPECT_THREAD_SANITIZER(run_race<race_without_barrier>, "data race"); }
TEST(Planted, RaceWithoutSyncwarp) { EXPECT_THREAD_SANITIZER(run_race<race_without_syncwarp>, "data race"); }
TEST(Planted, RaceByReuse) { EXPECT_THREAD_SANITIZER(run_race<race_by_reuse>, "data race"); }

void run_race_in_block(bool fixed) {
  const std::vector<int> index(64, 3);
  std::vector<float> y(4);
  race_in_block(index.data(), y.data(), fixed);
}
TEST(Planted, RaceInBlock) { EXPECT_THREAD_SANITIZER(run_race_in_block, "data race"); }

void run_race_between_blocks(bool fixed) {
  std::vector<float> y(32);
  race_between_blocks(y.data(), fixed);
}
TEST(Planted, RaceBetweenBlocks) { EXPECT_THREAD_SANITIZER(run_race_between_blocks, "data race"); }

}  // namespace
}  // namespace weft::planted
