// Allocation. Each block is one of the C library's, of exactly the bytes asked for, so that AddressSanitizer knows its
// end; device memory starts as NaN bytes.
#include "tests/simt/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "tests/simt/sanitizer.h"
#include "tests/simt/simt.h"
#include "tests/simt/stream.h"

namespace simt {
namespace {

struct Block {
  size_t bytes;
  Place place;
};
struct Blocks {
  QuietLock lock;
  std::map<uintptr_t, Block> by_address;
  size_t device_bytes = 0;
};
Blocks& blocks() {
  static Blocks b;
  return b;
}

/// The block that holds the address, with the lock taken.
const std::pair<const uintptr_t, Block>* block_of(const void* address) {
  const auto a = reinterpret_cast<uintptr_t>(address);
  auto next = blocks().by_address.upper_bound(a);
  if (next == blocks().by_address.begin()) return nullptr;
  --next;
  return a < next->first + std::max<size_t>(next->second.bytes, 1) ? &*next : nullptr;
}

cudaError_t allocate(void** pointer, size_t bytes, Place place) {
  if (!pointer) return fail(cudaErrorInvalidValue);
  *pointer = nullptr;
  {
    const Lock lock(runtime_lock());
    if (const cudaError_t error = refuse_in_any_capture(); error != cudaSuccess) return fail(error);
  }
  if (bytes == 0) return cudaSuccess;
  const bool on_device = place == Place::device;
  if (on_device && bytes > options().memory_bytes) return fail(cudaErrorMemoryAllocation);
  void* fresh = nullptr;
  if (posix_memalign(&fresh, 256, bytes) != 0) return fail(cudaErrorMemoryAllocation);
  if (on_device) std::fill_n(static_cast<char*>(fresh), bytes, static_cast<char>(-1));
  Blocks& b = blocks();
  Lock lock(b.lock);
  if (on_device && b.device_bytes + bytes > options().memory_bytes) {
    lock.unlock();
    std::free(fresh);
    return fail(cudaErrorMemoryAllocation);
  }
  if (on_device) b.device_bytes += bytes;
  b.by_address[reinterpret_cast<uintptr_t>(fresh)] = {bytes, place};
  *pointer = fresh;
  return cudaSuccess;
}

cudaError_t free_block(void* pointer, Place place) {
  if (!pointer) return cudaSuccess;
  {
    Lock lock(runtime_lock());
    if (const cudaError_t error = refuse_in_any_capture(); error != cudaSuccess) return fail(error);
    if (place == Place::device) synchronize_device(lock);  // as CUDA does; what frees pinned memory must wait itself
  }
  Blocks& b = blocks();
  Lock lock(b.lock);
  const auto found = b.by_address.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == b.by_address.end() || found->second.place != place) return fail(cudaErrorInvalidValue);
  if (place == Place::device) b.device_bytes -= found->second.bytes;
  b.by_address.erase(found);
  lock.unlock();
  std::free(pointer);
  return cudaSuccess;
}

}  // namespace

Place place_of(const void* address) {
  const Lock lock(blocks().lock);
  const auto* block = block_of(address);
  return block ? block->second.place : Place::pageable;
}

bool fits(const void* begin, size_t bytes) {
  const Lock lock(blocks().lock);
  const auto* block = block_of(begin);
  return !block || reinterpret_cast<uintptr_t>(begin) + bytes <= block->first + block->second.bytes;
}

}  // namespace simt

using namespace simt;

cudaError_t cudaMalloc(void** pointer, size_t bytes) { return allocate(pointer, bytes, Place::device); }
cudaError_t cudaFree(void* pointer) { return free_block(pointer, Place::device); }
cudaError_t cudaMallocHost(void** pointer, size_t bytes) { return allocate(pointer, bytes, Place::pinned); }
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return allocate(pointer, bytes, Place::pinned); }
cudaError_t cudaFreeHost(void* pointer) { return free_block(pointer, Place::pinned); }

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  if (!device || place_of(host) != Place::pinned) return fail(cudaErrorInvalidValue);
  *device = host;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Lock lock(blocks().lock);
  *total = options().memory_bytes;
  *free = *total - std::min(*total, blocks().device_bytes);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  const Place place = place_of(pointer);
  *attributes = {};
  attributes->type = place == Place::device   ? cudaMemoryTypeDevice
                     : place == Place::pinned ? cudaMemoryTypeHost
                                              : cudaMemoryTypeUnregistered;
  auto* p = const_cast<void*>(pointer);
  attributes->hostPointer = place == Place::pinned ? p : nullptr;
  attributes->devicePointer = place == Place::pageable ? nullptr : p;
  return cudaSuccess;
}
