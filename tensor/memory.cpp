// The caching allocator: free blocks are kept by size class (four classes a doubling, so at most a quarter is lost) and
// handed out again, since touching fresh pages costs more than most kernels. On a device they are kept by stream as
// well: what was freed while kernels that use it still wait may be written by kernels behind them only.
#include "tensor/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "tensor/backend.h"
#include "tensor/error.h"
#include "tensor/stream.h"

namespace weft {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kMostBytes = int64_t{1} << 48;  // what follows need not think of overflow
constexpr size_t kClasses = 4 * 64;
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kCaching = false;  // every block comes and goes by itself, so that the sanitizer sees its end
#else
constexpr bool kCaching = true;
#endif

struct SizeClass {
  int index;
  int64_t bytes;
};

constexpr int64_t round_up(int64_t bytes, int64_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

/// What blocks of class 4 · e + k have room for: (4 + k) · 2^e, as long as the alignment allows.
int64_t class_bytes(int index) { return round_up((int64_t{4} + index % 4) << (index / 4), kAlignment); }

/// The smallest class that holds `bytes`.
SizeClass size_class(int64_t bytes) {
  const auto n = static_cast<uint64_t>(std::max(bytes, kAlignment));
  const int exponent = std::bit_width(n - 1) - 3;  // n - 1 has its top bit at exponent + 2
  const uint64_t step = uint64_t{1} << exponent;
  const uint64_t steps = (n + step - 1) >> exponent;  // 4…8 steps
  const int index = 4 * exponent + static_cast<int>(steps) - 4;
  return {index, class_bytes(index)};
}

/// Where blocks come from: the system, or the runtime of a device, whose host memory is pinned.
class Source {
 public:
  explicit Source(Device device, bool pinned) : device_(device), pinned_(pinned) {}

  void* take(int64_t bytes) const {
    if (device_ == cpu) return from_system(bytes);
    const Backend& runtime = backend_in_use(device_);
    return pinned_ ? runtime.allocate_host(bytes) : runtime.allocate(bytes);
  }
  void give_back(void* block) const {
    if (device_ == cpu) return std::free(block);
    const Backend& runtime = backend_in_use(device_);
    pinned_ ? runtime.release_host(block) : runtime.release(block);
  }
  /// "cpu", "cuda:0", "pinned for cuda:0".
  std::string name() const { return (pinned_ ? "pinned for " : "") + weft::name(device_); }

 private:
  static void* from_system(int64_t bytes) {
    const int64_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAlignment;
    const int64_t rounded = round_up(bytes, alignment);
    void* block = std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded));
    if (block && alignment == kHugePage) madvise(block, static_cast<size_t>(rounded), MADV_HUGEPAGE);
    return block;
  }

  Device device_;
  bool pinned_;
};

class Allocator {
 public:
  explicit Allocator(Source source) : source_(source) {}

  void* allocate(int64_t bytes, uint32_t owner, void* stream) {
    const SizeClass c = size_class(bytes);
    void* block = nullptr;
    {
      std::lock_guard lock(mutex_);
      const bool over = limit_ > 0 && stats_.live + bytes > limit_;
      if (over) fail_out_of_memory(bytes);
      std::vector<void*>& list = lists(stream)[static_cast<size_t>(c.index)];
      if (!list.empty()) {
        block = list.back();
        list.pop_back();
        stats_.cached -= c.bytes;
      }
    }
    const bool fresh = block == nullptr;
    if (fresh) block = source_.take(c.bytes);
    if (!block) {
      release_cache();
      block = source_.take(c.bytes);
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

  void free(void* block, int64_t bytes, uint32_t owner, void* stream) {
    const SizeClass c = size_class(bytes);
    std::unique_lock lock(mutex_);
    stats_.live -= bytes;
    owned_[owner] -= bytes;
    if (kCaching || kept_.contains(stream)) {
      lists(stream)[static_cast<size_t>(c.index)].push_back(block);
      stats_.cached += c.bytes;
    } else {
      lock.unlock();
      source_.give_back(block);
    }
  }

  /// Of all streams but those that keep theirs.
  void release_cache() {
    std::vector<void*> blocks;
    {
      std::lock_guard lock(mutex_);
      take_out(unordered_, blocks);
      for (auto& [stream, lists] : ordered_)
        if (!kept_.contains(stream)) take_out(lists, blocks);
    }
    for (void* block : blocks) source_.give_back(block);
  }

  void keep(void* stream, bool on) {
    std::lock_guard lock(mutex_);
    on ? (void)kept_.insert(stream) : (void)kept_.erase(stream);
  }

  void move_cache(void* from, void* to) {
    std::lock_guard lock(mutex_);
    const auto found = ordered_.extract(from);
    if (found.empty()) return;
    for (size_t c = 0; c < kClasses; ++c) {
      std::vector<void*>& list = lists(to)[c];
      list.insert(list.end(), found.mapped()[c].begin(), found.mapped()[c].end());
    }
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
  using Lists = std::array<std::vector<void*>, kClasses>;

  Lists& lists(void* stream) { return stream ? ordered_[stream] : unordered_; }

  void take_out(Lists& lists, std::vector<void*>& blocks) {
    for (size_t c = 0; c < lists.size(); ++c) {
      stats_.cached -= class_bytes(static_cast<int>(c)) * static_cast<int64_t>(lists[c].size());
      blocks.insert(blocks.end(), lists[c].begin(), lists[c].end());
      lists[c].clear();
    }
  }

  std::vector<memory::Owner> owners_locked() const {
    std::vector<memory::Owner> list;
    for (uint32_t id = 0; id < owned_.size(); ++id)
      if (owned_[id] > 0) list.push_back({Scope::path(id), owned_[id]});
    std::ranges::stable_sort(list, [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return list;
  }

  [[noreturn]] void fail_out_of_memory(int64_t bytes) const {
    std::string text = fmt::format("no room for {} bytes on {}: {} live, {} at peak; held by", bytes, source_.name(),
                                   stats_.live, stats_.peak);
    int shown = 0;
    for (const memory::Owner& owner : owners_locked()) {
      if (shown++ == 5) break;
      text +=
          fmt::format("{} {} {}", shown > 1 ? "," : "", owner.path.empty() ? "(no module)" : owner.path, owner.bytes);
    }
    fail("memory", text);
  }

  const Source source_;
  std::mutex mutex_;
  Lists unordered_;                 // the CPU's and pinned memory's, whose use is over when they are freed
  std::map<void*, Lists> ordered_;  // by stream
  std::set<void*> kept_;            // streams whose blocks stay
  std::vector<int64_t> owned_;      // live bytes by path id
  memory::Statistics stats_;
  int64_t limit_ = 0;
};

/// The allocator of a device, or of host memory pinned for it; never destroyed: tensors may outlive static destruction.
Allocator& allocator(Device device, bool pinned = false) {
  if (device == cpu) {
    static Allocator* host = new Allocator(Source(cpu, false));
    return *host;
  }
  using Slots = std::array<std::atomic<Allocator*>, 2 * kMostDevices>;  // plain, then pinned
  static Slots cuda{}, simt{};
  WEFT_CHECK(device.index >= 0 && device.index < kMostDevices, "memory", "there is no device {}", name(device));
  std::atomic<Allocator*>& slot =
      (device.type == DeviceType::cuda ? cuda : simt)[static_cast<size_t>(device.index + (pinned ? kMostDevices : 0))];
  if (Allocator* made = slot.load(std::memory_order_acquire)) return *made;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!slot.load(std::memory_order_relaxed))
    slot.store(new Allocator(Source(device, pinned)), std::memory_order_release);
  return *slot.load(std::memory_order_relaxed);
}

constexpr int64_t kGuard = 64;
constexpr int kGuardByte = 0xa5;
std::atomic<int> checking{0};
std::atomic<int64_t> damaged_blocks{0};

/// Writes and reads on the host or, in the stream's order, on a device.
void set_bytes(Device device, void* to, int value, int64_t bytes, void* stream) {
  if (device == cpu)
    std::memset(to, value, static_cast<size_t>(bytes));
  else
    backend(device.type).set_bytes(to, value, bytes, stream);
}

bool intact(Device device, const unsigned char* zone, void* stream) {
  std::array<unsigned char, kGuard> bytes{};
  if (device == cpu) {
    std::memcpy(bytes.data(), zone, kGuard);
  } else {
    const Backend& runtime = backend(device.type);
    runtime.copy(bytes.data(), zone, kGuard, stream);
    runtime.wait(stream);  // faults are for who can be told of them
  }
  return std::ranges::all_of(bytes, [](unsigned char b) { return b == kGuardByte; });
}

}  // namespace

Storage::Storage(int64_t bytes, Device device, Device allocator)
    : bytes_(bytes),
      device_(device),
      allocator_(allocator),
      owner_(Scope::current()),
      guarded_(checking.load(std::memory_order_relaxed) > 0) {
  WEFT_CHECK(bytes <= kMostBytes, "memory", "no room for {} bytes: no machine has as many", bytes);
  if (!(device_ == cpu)) stream_ = use_device(device_);
  void* const stream = stream_.get();
  const int64_t guard = guarded_ ? kGuard : 0;
  auto* block =
      static_cast<unsigned char*>(weft::allocator(allocator_, is_pinned()).allocate(bytes + 2 * guard, owner_, stream));
  if (guarded_) {
    set_bytes(device_, block, kGuardByte, kGuard, stream);
    set_bytes(device_, block + kGuard, 0xff, bytes, stream);
    set_bytes(device_, block + kGuard + bytes, kGuardByte, kGuard, stream);
  }
  data_ = block + guard;
}

Storage::~Storage() {
  void* const stream = stream_.get();
  const int64_t guard = guarded_ ? kGuard : 0;
  auto* block = static_cast<unsigned char*>(data_) - guard;
  if (guarded_) {
    if (!(device_ == cpu)) use_device(device_);
    if (!intact(device_, block, stream) || !intact(device_, block + kGuard + bytes_, stream)) ++damaged_blocks;
  }
  weft::allocator(allocator_, is_pinned()).free(block, bytes_ + 2 * guard, owner_, stream);
}

namespace memory {

Statistics statistics(Device device) { return allocator(device).statistics(); }
Statistics pinned_statistics(Device pinned_for) { return allocator(pinned_for, true).statistics(); }
void reset_peak(Device device) { allocator(device).reset_peak(); }
std::vector<Owner> owners(Device device) { return allocator(device).owners(); }
void release_cache(Device device) { allocator(device).release_cache(); }
void keep_cache(const Stream& stream, bool keep) { allocator(stream.device()).keep(stream.handle(), keep); }
void move_cache(Device device, void* from, void* to) { allocator(device).move_cache(from, to); }
void set_limit(int64_t bytes, Device device) { allocator(device).set_limit(bytes); }

Checking::Checking() { checking.fetch_add(1); }
Checking::~Checking() { checking.fetch_sub(1); }
int64_t Checking::damaged() { return damaged_blocks.load(); }

}  // namespace memory
}  // namespace weft
