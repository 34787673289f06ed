// The caching allocator: free blocks are kept by size class (four classes a doubling, so at most a quarter is lost) and
// handed out again, since touching fresh pages costs more than most kernels.
#include "tensor/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "tensor/error.h"

namespace weft {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 48;  // what follows need not think of overflow
constexpr int kClasses = 4 * 64;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;  // every block comes and goes by itself, so that the sanitizer sees its end
#else
constexpr bool kCaching = true;
#endif

struct SizeClass {
  int index;
  int64_t bytes;
};

/// The smallest class that holds `bytes`: (4 + k) · 2^e for k in 0…3.
SizeClass size_class(int64_t bytes) {
  const auto n = static_cast<uint64_t>(std::max(bytes, kAlignment));
  const int exponent = std::bit_width(n - 1) - 3;  // n - 1 has its top bit at exponent + 2
  const uint64_t step = uint64_t{1} << exponent;
  const uint64_t steps = (n + step - 1) >> exponent;  // 4…8 steps
  const auto rounded = static_cast<int64_t>(steps << exponent);
  return {4 * exponent + static_cast<int>(steps) - 4, (rounded + kAlignment - 1) / kAlignment * kAlignment};
}

class Allocator {
 public:
  void* allocate(int64_t bytes, uint32_t owner) {
    const SizeClass c = size_class(bytes);
    void* block = nullptr;
    {
      std::lock_guard lock(mutex_);
      const bool over = limit_ > 0 && stats_.live + bytes > limit_;
      if (over) fail_out_of_memory(bytes);
      std::vector<void*>& list = free_.at(static_cast<size_t>(c.index));
      if (!list.empty()) {
        block = list.back();
        list.pop_back();
        stats_.cached -= c.bytes;
      }
    }
    const bool fresh = block == nullptr;
    if (fresh) block = from_system(c.bytes);
    if (!block) {
      release_cache();
      block = from_system(c.bytes);
    }
    std::lock_guard lock(mutex_);
    if (!block) fail_out_of_memory(bytes);
    stats_.allocations += 1;
    stats_.system += fresh;
    stats_.live += bytes;
    stats_.peak = std::max(stats_.peak, stats_.live);
    if (owner >= owned_.size()) owned_.resize(owner + 1);
    owned_[owner] += bytes;
    return block;
  }

  void free(void* block, int64_t bytes, uint32_t owner) {
    const SizeClass c = size_class(bytes);
    std::unique_lock lock(mutex_);
    stats_.live -= bytes;
    owned_[owner] -= bytes;
    if (kCaching) {
      free_[static_cast<size_t>(c.index)].push_back(block);
      stats_.cached += c.bytes;
    } else {
      lock.unlock();
      std::free(block);
    }
  }

  void release_cache() {
    std::lock_guard lock(mutex_);
    for (std::vector<void*>& list : free_) {
      for (void* block : list) std::free(block);
      list.clear();
    }
    stats_.cached = 0;
  }

  memory::Statistics statistics() {
    std::lock_guard lock(mutex_);
    return stats_;
  }
  void reset_peak() {
    std::lock_guard lock(mutex_);
    stats_.peak = stats_.live;
  }
  void set_limit(int64_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
  }
  std::vector<memory::Owner> owners() {
    std::lock_guard lock(mutex_);
    return owners_locked();
  }

 private:
  static void* from_system(int64_t bytes) {
    const int64_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
    const int64_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
    if (block && alignment == kHugePage) madvise(block, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    return block;
  }

  std::vector<memory::Owner> owners_locked() const {
    std::vector<memory::Owner> list;
    for (uint32_t id = 0; id < owned_.size(); ++id)
      if (owned_[id] > 0) list.push_back({Scope::path(id), owned_[id]});
    std::ranges::stable_sort(list, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return list;
  }

  [[noreturn]] void fail_out_of_memory(int64_t bytes) const {
    std::string text =
        fmt::format("no room for {} bytes: {} live, {} at peak; held by", bytes, stats_.live, stats_.peak);
    int shown = 0;
    for (const memory::Owner& owner : owners_locked()) {
      if (shown++ == 5) break;
      text +=
          fmt::format("{} {} {}", shown > 1 ? "," : "", owner.path.empty() ? "(no module)" : owner.path, owner.bytes);
    }
    fail("memory", text);
  }

  std::mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  std::vector<int64_t> owned_;  // live bytes by path id
  memory::Statistics stats_;
  int64_t limit_ = 0;
};

Allocator& allocator(Device device) {
  WEFT_CHECK(device.type == DeviceType::cpu, "memory", "no memory on device {}", name(device));
  static Allocator* host = new Allocator;  // never destroyed: tensors may outlive static destruction
  return *host;
}

constexpr int64_t kGuard = 64;
constexpr int kGuardByte = 0xa5;
std::atomic<int> checking{0};
std::atomic<int64_t> damaged_blocks{0};

bool intact(const unsigned char* zone) {
  return std::all_of(zone, zone + kGuard, [](unsigned char b) { return b == kGuardByte; });
}

}  // namespace

Storage::Storage(int64_t bytes, Device device)
    : bytes_(bytes), device_(device), owner_(Scope::current()), guarded_(checking.load(std::memory_order_relaxed) > 0) {
  WEFT_CHECK(bytes <= kMostBytes, "memory", "no room for {} bytes: no machine has as many", bytes);
  if (!guarded_) {
    data_ = allocator(device).allocate(bytes, owner_);
    return;
  }
  auto* block = static_cast<unsigned char*>(allocator(device).allocate(bytes + 2 * kGuard, owner_));
  std::memset(block, kGuardByte, kGuard);
  std::memset(block + kGuard, 0xff, static_cast<size_t>(bytes));
  std::memset(block + kGuard + bytes, kGuardByte, kGuard);
  data_ = block + kGuard;
}

Storage::~Storage() {
  if (!guarded_) {
    allocator(device_).free(data_, bytes_, owner_);
    return;
  }
  auto* block = static_cast<unsigned char*>(data_) - kGuard;
  if (!intact(block) || !intact(block + kGuard + bytes_)) damaged_blocks.fetch_add(1);
  allocator(device_).free(block, bytes_ + 2 * kGuard, owner_);
}

namespace memory {

Statistics statistics(Device device) { return allocator(device).statistics(); }
void reset_peak(Device device) { allocator(device).reset_peak(); }
std::vector<Owner> owners(Device device) { return allocator(device).owners(); }
void release_cache(Device device) { allocator(device).release_cache(); }
void set_limit(int64_t bytes, Device device) { allocator(device).set_limit(bytes); }

Checking::Checking() { checking.fetch_add(1); }
Checking::~Checking() { checking.fetch_sub(1); }
int64_t Checking::damaged() { return damaged_blocks.load(); }

}  // namespace memory
}  // namespace weft
