// Current streams are a matter of each thread.
#include "tensor/stream.h"

#include <array>
#include <mutex>
#include <utility>

#include "tensor/backend.h"
#include "tensor/error.h"

namespace weft {
namespace {

/// CUDA devices by index, then the one of the emulator.
size_t slot_of(Device device) {
  WEFT_CHECK(device.index >= 0 && device.index < kMostDevices, "device", "there are no {} devices", device.index + 1);
  return static_cast<size_t>(device.type == DeviceType::simt ? kMostDevices : device.index);
}

struct Used {
  Device device;  // whose backend was last told to use it; the CPU: none
  std::shared_ptr<void> stream;
  std::array<std::shared_ptr<void>, kMostDevices + 1> guarded;  // by slot; null: the main stream
};
thread_local Used used;

/// Made at the first use of the device and kept: tensors may outlive static destruction.
void* main_stream(Device device) {
  static std::array<std::once_flag, kMostDevices + 1> made;
  static std::array<void*, kMostDevices + 1> streams{};
  const size_t slot = slot_of(device);
  std::call_once(made[slot], [&] {
    const std::string reason = why_unavailable(device);
    WEFT_CHECK(reason.empty(), "device", "{}", reason);
    backend(device.type).set_device(device.index);
    streams[slot] = backend(device.type).create_stream();
  });
  return streams[slot];
}

}  // namespace

const std::shared_ptr<void>& use_device(Device device) {
  if (!(device == used.device)) {
    const std::shared_ptr<void>& guarded = used.guarded[slot_of(device)];
    used.device = cpu;  // until all of this has worked
    // The main stream is nobody's: an owner that owns nothing.
    used.stream = guarded ? guarded : std::shared_ptr<void>(std::shared_ptr<void>(), main_stream(device));
    backend(device.type).set_device(device.index);
    used.device = device;
  }
  return used.stream;
}

void* used_stream() { return used.stream.get(); }

const Backend& backend_in_use(Device device) {
  use_device(device);
  return backend(device.type);
}

Stream::Stream(Device device) : device_(device) {
  if (device == cpu) return;
  handle_ = {backend_in_use(device).create_stream(), [device](void* stream) {
               const Backend& runtime = backend_in_use(device);
               runtime.wait(stream);
               memory::move_cache(device, stream, main_stream(device));
               runtime.destroy_stream(stream);
             }};
}

void Stream::synchronize() const {
  if (!handle_) return;
  backend_in_use(device_).synchronize(handle());
}

void Stream::wait() const noexcept {
  if (handle_) backend_in_use(device_).wait(handle());
}

Stream current_stream(Device device) { return {device, device == cpu ? nullptr : use_device(device)}; }

void synchronize(Device device) { current_stream(device).synchronize(); }

void copy_async(const Tensor& from, Tensor& to, const Stream& stream) {
  WEFT_ASSERT(from.sizes() == to.sizes() && from.strides() == to.strides() && from.dtype() == to.dtype());
  backend_in_use(stream.device()).copy(to.raw_data(), from.raw_data(), from.bytes(), stream.handle());
}

StreamGuard::StreamGuard(const Stream& stream) : device_(stream.device()) {
  if (device_ == cpu) return;
  before_ = std::exchange(used.guarded[slot_of(device_)], stream.handle_);
  used.device = cpu;  // looked up anew at the next use
}

StreamGuard::~StreamGuard() {
  if (device_ == cpu) return;
  used.guarded[slot_of(device_)] = before_;
  used.device = cpu;
}

Event::Event(Device device) : device_(device) {
  if (device == cpu) return;
  handle_ = {backend_in_use(device).create_event(),
             [device](void* event) { backend_in_use(device).destroy_event(event); }};
}

void Event::record(const Stream& stream) {
  WEFT_ASSERT(stream.device() == device_);
  if (!handle_) return;
  backend_in_use(device_).record_event(handle_.get(), stream.handle());
}

void Event::wait(const Stream& stream) const {
  if (!handle_) return;
  backend_in_use(device_).wait_event(stream.handle(), handle_.get());
}

void Event::synchronize() const {
  if (!handle_) return;
  backend_in_use(device_).synchronize_event(handle_.get());
}

}  // namespace weft
