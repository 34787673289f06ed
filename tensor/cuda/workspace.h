// Device memory for the inner use of a library: stream-ordered like all tensors, and aligned as the libraries ask.
#pragma once

#include "tensor/tensor.h"

namespace weft {

class Workspace {
 public:
  Workspace() = default;
  Workspace(int64_t bytes, Device device) {
    if (bytes > 0) memory_ = empty({bytes + kAlignment}, {u8, device});
  }
  void* data() const {
    if (!memory_.defined()) return nullptr;
    const auto address = reinterpret_cast<uintptr_t>(memory_.raw_data());
    return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }

 private:
  static constexpr int64_t kAlignment = 256;

  Tensor memory_;
};

}  // namespace weft
