// Current streams are a matter of each thread.
#include "tensor/stream.h"

#include <array>
#include <mutex>
#include <utility>

#include "tensor/backend.h"
#include "tensor/error.h"

namespace weft {
namespace {

constexpr int kMostDevices = 64;

/// CUDA devices by index, then the one of the emulator.
size_t slot_of(Device device) {
  WEFT_CHECK(device.index >= 0 && device.index < kMostDevices, "device", "there are no {} devices", device.index + 1);
  return static_cast<size_t>(device.type == DeviceType::simt ? kMostDevices : device.index);
}

struct Used {
  Device device;  // whose backend was last told to use it
  void* stream = nullptr;
  std::array<void*, kMostDevices + 1> guarded{};  // by slot; null: the main stream
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

void* stream_of(Device device) {
  void* const guarded = used.guarded[slot_of(device)];
  return guarded ? guarded : main_stream(device);
}

}  // namespace

void* use_device(Device device) {
  if (device.type == DeviceType::cpu) return nullptr;
  if (!(device == used.device)) {
    void* const stream = stream_of(device);
    backend(device.type).set_device(device.index);
    used.device = device;
    used.stream = stream;
  }
  return used.stream;
}

void* used_stream() { return used.stream; }

const Backend& backend_in_use(Device device) {
  use_device(device);
  return backend(device.type);
}

Stream::Stream(Device device) : device_(device) {
  if (device == cpu) return;
  handle_ = {backend_in_use(device).create_stream(),
             [device](void* stream) { backend_in_use(device).destroy_stream(stream); }};
}

void Stream::synchronize() const {
  if (!handle_) return;
  backend_in_use(device_).synchronize(handle());
}

Stream current_stream(Device device) {
  return {device, std::shared_ptr<void>(std::shared_ptr<void>(), use_device(device))};
}

void synchronize(Device device) {
  if (void* stream = use_device(device)) backend(device.type).synchronize(stream);
}

void copy_async(const Tensor& from, Tensor& to, const Stream& stream) {
  WEFT_ASSERT(from.sizes() == to.sizes() && from.strides() == to.strides() && from.dtype() == to.dtype());
  backend_in_use(stream.device()).copy(to.raw_data(), from.raw_data(), from.bytes(), stream.handle());
}

StreamGuard::StreamGuard(const Stream& stream) : device_(stream.device()), before_(nullptr) {
  if (device_ == cpu) return;
  keep_ = stream.handle_;
  before_ = std::exchange(used.guarded[slot_of(device_)], stream.handle());
  used.device = cpu;  // looked up anew
  use_device(device_);
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

double Event::since(const Event& start) const {
  if (!handle_) return 0;
  use_device(device_);
  return backend(device_.type).milliseconds(start.handle_.get(), handle_.get());
}

}  // namespace weft
