// The allocator: reuse, statistics, owners, limits, and the checking mode.
#include "tensor/memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "tensor/stream.h"
#include "tensor/tensor.h"
#include "tests/expect_error.h"
#include "tests/on_device.h"

namespace weft {
namespace {

TEST(Memory, CountsLivePeakAndCached) {
  memory::release_cache();
  const int64_t live = memory::statistics().live;
  {
    const Tensor x = empty({1000});
    EXPECT_EQ(memory::statistics().live, live + 4000);
    memory::reset_peak();
    { const Tensor y = empty({500}); }
    EXPECT_EQ(memory::statistics().peak, live + 6000);
  }
  EXPECT_EQ(memory::statistics().live, live);
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_GE(memory::statistics().cached, 6000);
  const int64_t system = memory::statistics().system;
  { const Tensor again = empty({1000}); }
  EXPECT_EQ(memory::statistics().system, system) << "a freed block was not used again";
#endif
  memory::release_cache();
  EXPECT_EQ(memory::statistics().cached, 0);
}

TEST(Memory, EverySizeIsAlignedAndWritable) {
  for (int64_t bytes = 1; bytes < 5'000'000; bytes = bytes * 5 / 4 + 1) {
    const Tensor x = empty({bytes}, u8);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.raw_data()) % 64, 0u);
    x.data<uint8_t>()[0] = x.data<uint8_t>()[bytes - 1] = 1;
  }
}

class MemoryDevice : public OnDevice<testing::Test> {};

TEST_F(MemoryDevice, OutOfMemoryNamesTheDeviceAndWhoHoldsWhat) {
  Tensor held;
  {
    const Scope scope(Scope::intern("Net.embedding"));
    held = empty({30'000}, device);
  }
  const std::string text = error_of([&] { (void)empty({int64_t{1} << 40}, device); });
  EXPECT_NE(text.find("no room for 4398046511104 bytes on " + name(device)), std::string::npos) << text;
  EXPECT_NE(text.find("Net.embedding 120000"), std::string::npos) << text;
  EXPECT_EQ(full({4}, 2, device).to_vector<float>()[3], 2) << "the device is of no use after the error";
}

TEST_F(MemoryDevice, AStreamsBlocksAreItsOwn) {
  const Stream other(device);
  void* block = nullptr;
  {
    const Tensor x = empty({1000}, device);
    block = x.raw_data();
  }
  const StreamGuard guard(other);
  const Tensor y = empty({1000}, device);
  EXPECT_NE(y.raw_data(), block) << "a block went to another stream, whose work does not wait";
}

TEST_F(MemoryDevice, BlocksOutliveTheirStream) {
  Tensor x;
  {
    const Stream other(device);
    const StreamGuard guard(other);
    x = full({1000}, 3, device);
    other.synchronize();
  }
  EXPECT_EQ(x.to_vector<float>()[999], 3);
#if defined(__SANITIZE_ADDRESS__)
  x = {};  // every block comes and goes by itself
#else
  const int64_t system = memory::statistics(device).system;
  x = {};
  const Tensor again = full({1000}, 4, device);
  EXPECT_EQ(memory::statistics(device).system, system) << "the block went with its stream";
  EXPECT_EQ(again.to_vector<float>()[0], 4);
#endif
}

TEST_F(MemoryDevice, PinnedMemoryIsCountedOnItsOwn) {
  const int64_t live = memory::statistics().live, pinned = memory::pinned_statistics(device).live;
  const Tensor x = empty_pinned({100}, f32, device);
  EXPECT_EQ(x.device(), cpu);
  EXPECT_TRUE(x.storage()->is_pinned());
  EXPECT_EQ(memory::statistics().live, live);
  EXPECT_EQ(memory::pinned_statistics(device).live, pinned + 400);
}

TEST(Memory, OutOfMemorySaysWhoHoldsWhat) {
  const int64_t live = memory::statistics().live;
  Tensor held;
  {
    const Scope scope(Scope::intern("Net.embedding"));
    held = empty({30'000});
  }
  EXPECT_EQ(memory::owners()[0].path, "Net.embedding");
  memory::set_limit(live + 150'000);
  EXPECT_ERROR(empty({20'000}), "no room for 80000 bytes");
  EXPECT_ERROR(empty({20'000}), "Net.embedding 120000");
  memory::set_limit(0);
  EXPECT_NO_THROW(empty({20'000}));
}

TEST(Memory, CheckingPoisonsAndFindsDamage) {
  const int64_t damaged = memory::Checking::damaged();
  const memory::Checking checking;
  {
    const Tensor x = empty({10});
    EXPECT_TRUE(std::isnan(x.data<float>()[9]));
  }
  EXPECT_EQ(memory::Checking::damaged(), damaged);
#if !defined(__SANITIZE_ADDRESS__)
  for (const int64_t outside : {-1, 40}) {
    const Tensor x = empty({10});
    volatile uint8_t* bytes = static_cast<uint8_t*>(x.raw_data());
    bytes[outside] = 1;
  }
  EXPECT_EQ(memory::Checking::damaged(), damaged + 2);
#endif
}

TEST(Memory, ThreadsMayAllocateAtOnce) {
  const int64_t live = memory::statistics().live;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int64_t i = 0; i < 2000; ++i) {
        const Tensor x = empty({(i * 37 + t) % 3000 + 1});
        x.data<float>()[0] = 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory::statistics().live, live);
}

}  // namespace
}  // namespace weft
