// Streams and events of devices beside the CPU: the order in which their work is done. All of a device's work goes to
// the current stream of the calling thread, which is the device's main stream unless a StreamGuard says otherwise.
#pragma once

#include <memory>

#include "tensor/tensor.h"

namespace weft {

/// A queue of work on one device. On the CPU, whose work is done at once, streams are empty handles.
class Stream {
 public:
  /// A new stream of `device`.
  explicit Stream(Device device);
  Device device() const { return device_; }
  void* handle() const { return handle_.get(); }
  /// Waits for all of its work; throws what kernels of its device found wrong.
  void synchronize() const;
  /// Waits, and leaves what was found wrong to who synchronizes next: for destructors.
  void wait() const noexcept;

 private:
  friend Stream current_stream(Device);
  friend class StreamGuard;
  Stream(Device device, std::shared_ptr<void> handle) : device_(device), handle_(std::move(handle)) {}

  Device device_;
  std::shared_ptr<void> handle_;
};

/// The stream that work of this thread on `device` goes to.
Stream current_stream(Device device);
/// Waits for the current stream of `device`; throws what its kernels found wrong: "label 12 … is outside of the
/// classes". Reading values (`item`, `to_vector`, `to(cpu)`) does so by itself.
void synchronize(Device device);

/// Copies bytes in the order of `stream`, without waiting: `from` and `to` are dense, of one dtype, sizes and order of
/// strides, on the stream's device or in pinned memory, and stay as they are until the copy is done.
void copy_async(const Tensor& from, Tensor& to, const Stream& stream);

/// Makes a stream the current one of this thread until the end of the block. Tensors made meanwhile belong to it: their
/// memory is used anew by its later work, so what another stream does with them must be done, or waited for by an
/// event, before they go.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Device device_;
  std::shared_ptr<void> before_;
};

/// A mark in a stream.
class Event {
 public:
  explicit Event(Device device);
  /// Marks what is in `stream` now.
  void record(const Stream& stream);
  /// Work put into `stream` from here on waits for the mark.
  void wait(const Stream& stream) const;
  /// The host waits for the mark.
  void synchronize() const;

 private:
  Device device_;
  std::shared_ptr<void> handle_;
};

/// For the allocator: makes `device`, not the CPU, the one that this thread's calls of its backend are for, and gives
/// its current stream, which lives as long as someone holds it.
const std::shared_ptr<void>& use_device(Device device);
/// The current stream of the device that was used last.
void* used_stream();

}  // namespace weft
