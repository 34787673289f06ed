// Batches on their way to a device: the next one is copied while the current one is worked with.
#pragma once

#include <array>

#include "data/dataset.h"
#include "tensor/stream.h"

namespace weft::data {

/// Copies go through pinned memory in a stream of their own. One batch may be under way at a time.
class Upload {
 public:
  explicit Upload(Device device);
  /// Waits for the copy that is under way.
  ~Upload();
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  /// Begins to copy a batch in host memory. It does not overtake what the current stream has to do now.
  void start(const Batch& host);
  /// The batch on the device; the current stream waits for its copy, the host does not.
  Batch take();

 private:
  struct Slot {
    explicit Slot(Device device) : copied(device) {}
    Batch pinned;
    Event copied;
  };

  Tensor send(const Tensor& host, Tensor& pinned) const;

  Device device_;
  weft::Stream copies_;
  Event before_;  // what the current stream had to do when the copy began
  std::array<Slot, 2> slots_;
  size_t started_ = 0;
  Batch batch_;  // on the device, under way
};

}  // namespace weft::data
