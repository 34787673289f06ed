// The memory of a batch comes from the current stream's, so its copy waits for what that stream had to do before, which
// may still use the same block; it overlaps with what comes after.
#include "data/upload.h"

#include <cstring>

#include "tensor/view.h"

namespace weft::data {

Upload::Upload(Device device) : device_(device), copies_(device), before_(device), slots_{Slot(device), Slot(device)} {}

Upload::~Upload() { copies_.wait(); }

Tensor Upload::send(const Tensor& host, Tensor& pinned) const {
  const Tensor x = raw::contiguous(host);
  pinned = empty_pinned(x.sizes(), x.dtype(), device_);
  std::memcpy(pinned.raw_data(), x.raw_data(), static_cast<size_t>(x.bytes()));
  Tensor out = empty(x.sizes(), {x.dtype(), device_});
  copy_async(pinned, out, copies_);
  return out;
}

void Upload::start(const Batch& host) {
  Slot& slot = slots_[started_ % slots_.size()];
  slot.copied.synchronize();  // of the batch before the last
  before_.record(current_stream(device_));
  before_.wait(copies_);
  try {
    batch_ = {send(host.x, slot.pinned.x), send(host.y, slot.pinned.y)};
  } catch (...) {
    copies_.wait();  // for what is freed now
    throw;
  }
  slot.copied.record(copies_);
  ++started_;
}

Batch Upload::take() {
  slots_[(started_ - 1) % slots_.size()].copied.wait(current_stream(device_));
  return std::move(batch_);
}

}  // namespace weft::data
