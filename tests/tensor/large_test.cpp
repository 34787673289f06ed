// Tensors past 2^31 elements, in bytes so that they fit: index arithmetic in loops, broadcasts and sums. Skipped where
// memory is short.
#include <gtest/gtest.h>
#include <unistd.h>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/memory.h"
#include "tensor/view.h"

namespace weft {
namespace {

constexpr int64_t kRows = 65536, kColumns = 32769;  // 2^31 + 65536 elements
static_assert(kRows * kColumns > int64_t{1} << 31);

/// Bytes that are free now, and for the group of processes that this one is counted in.
int64_t free_bytes() {
  int64_t free = sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
  if (FILE* f = std::fopen("/sys/fs/cgroup/memory.max", "r")) {
    long long limit = 0, used = 0;
    const bool limited = std::fscanf(f, "%lld", &limit) == 1;
    std::fclose(f);
    if (FILE* g = limited ? std::fopen("/sys/fs/cgroup/memory.current", "r") : nullptr) {
      if (std::fscanf(g, "%lld", &used) == 1) free = std::min<int64_t>(free, limit - used);
      std::fclose(g);
    }
  }
  return free;
}

class Large : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "skipped: one thread runs here, and watching 2^31 bytes of its memory takes minutes";
#endif
    constexpr int64_t kNeeded = int64_t{5} << 29;  // one tensor of 2 GiB and some room
    if (free_bytes() < kNeeded)
      GTEST_SKIP() << "skipped: " << (free_bytes() >> 20) << " MiB free, the test needs " << (kNeeded >> 20);
  }
  void TearDown() override { memory::release_cache(); }
};

uint8_t at(const Tensor& x, int64_t row, int64_t column) {
  return x.data<uint8_t>()[row * x.strides()[0] + column * x.strides()[1]];
}

// Field case 4: [65536, 1] + [1, 32769], where the last element is past 2^31; then the sum of them all.
TEST_F(Large, BroadcastAndSum) {
  Tensor rows = zeros({kRows, 1}, u8), columns = zeros({1, kColumns}, u8);
  rows.data<uint8_t>()[kRows - 1] = 3;
  columns.data<uint8_t>()[kColumns - 1] = 4;
  Tensor x = rows + columns;
  ASSERT_EQ(x.numel(), kRows * kColumns);
  EXPECT_EQ(at(x, kRows - 1, kColumns - 1), 7);
  EXPECT_EQ(at(x, kRows - 1, 0), 3);
  EXPECT_EQ(at(x, 0, kColumns - 1), 4);
  EXPECT_EQ(at(x, kRows - 2, kColumns - 2), 0);
  EXPECT_EQ(sum(x).to_vector<int64_t>()[0], 3 * kColumns + 4 * kRows);
  EXPECT_EQ(argmax(x).to_vector<int64_t>()[0], kRows * kColumns - 1);

  // The same memory in another shape: in place, over columns, and a view that begins past 2^31.
  Tensor flat = x.reshape({kRows * kColumns});
  flat.add_(flat);
  EXPECT_EQ(flat.select(0, kRows * kColumns - 1).item(), 14);
  const Tensor tall = x.reshape({kRows * kColumns / 2, 2});
  const std::vector<int64_t> sums = sum(tall, {0}).to_vector<int64_t>();
  EXPECT_EQ(sums[0] + sums[1], 2 * (3 * kColumns + 4 * kRows));
  const Tensor end = flat.narrow(0, (int64_t{1} << 31) + 5, 65531);
  EXPECT_EQ(end.clone().to_vector<int64_t>().back(), 14);
}

}  // namespace
}  // namespace weft
