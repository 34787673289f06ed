// Memory of tensors: one caching allocator a device, with statistics that name the owner, and a checking mode for
// tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/ref.h"

namespace weft {

class Stream;

/// A block of device memory, shared by all the views on it. `version` counts in-place writes.
class Storage : public RefCounted {
 public:
  /// Allocates `bytes` (64-byte aligned, not initialised) and books them on the current module path.
  Storage(int64_t bytes, Device device) : Storage(bytes, device, device) {}
  /// Host memory that `pinned_for` reads and writes by itself, without a copy of the driver's in between.
  static Storage* pinned(int64_t bytes, Device pinned_for) { return new Storage(bytes, Device{}, pinned_for); }
  ~Storage() override;

  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// Host memory of a device's runtime.
  bool is_pinned() const { return !(allocator_ == device_); }
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  Storage(int64_t bytes, Device device, Device allocator);

  void* data_ = nullptr;
  int64_t bytes_;
  Device device_, allocator_;     // differ for pinned memory
  std::shared_ptr<void> stream_;  // in whose order the block is used: it is free for others of that stream only
  std::atomic<uint32_t> version_{0};
  uint32_t owner_;
  bool guarded_ = false;
};

namespace memory {

struct Statistics {
  int64_t live = 0;         ///< bytes of tensors alive
  int64_t peak = 0;         ///< highest `live` since the start or `reset_peak`
  int64_t cached = 0;       ///< bytes held for reuse
  int64_t allocations = 0;  ///< number of requests
  int64_t system = 0;       ///< requests that had to go to the system
};

struct Owner {
  std::string path;  ///< module path; empty for memory taken outside of modules
  int64_t bytes;
};

/// Of tensors on `device`; pinned host memory is counted on its own, by `pinned_statistics`.
Statistics statistics(Device device = {});
Statistics pinned_statistics(Device pinned_for);
void reset_peak(Device device = {});
/// Live bytes by the module that took them, largest first.
std::vector<Owner> owners(Device device = {});
/// Gives all cached blocks back to the system.
void release_cache(Device device = {});
/// Whether the free blocks of a stream stay its own whatever `release_cache` says: a graph goes on using them.
void keep_cache(const Stream& stream, bool keep);
/// Gives the free blocks of a stream whose work is done to another one.
void move_cache(Device device, void* from, void* to);
/// Limits live bytes, for tests and shared machines; 0 lifts the limit. Passing it throws as a full machine does.
void set_limit(int64_t bytes, Device device = {});

/// While one of these lives, new blocks start as NaN bytes between two guard zones; freeing a block whose zone was
/// written counts in `damaged`. Test harnesses use it to find reads of unwritten memory and writes out of bounds.
class Checking {
 public:
  Checking();
  ~Checking();
  Checking(const Checking&) = delete;
  Checking& operator=(const Checking&) = delete;
  /// Blocks found damaged since the start of the process.
  static int64_t damaged();
};

}  // namespace memory
}  // namespace weft
