// The record of what a kernel found wrong with its input, such as a label out of range. It lies in memory that the host
// sees, and is thrown when the host next waits for the device.
#pragma once

#include <cstdint>

namespace weft::cuda {

/// The first fault since the host last looked: "[op] what VALUE at position POSITION is outside of range [0, SIZE)".
struct Fault {
  enum State : int32_t { none, being_written, complete };

  int32_t state;  // a State; only a complete one is read
  int64_t value, position, size;
  const char *op, *what, *range;  // literals of the host
};

/// The fault record of the device in use, as kernels see it.
Fault* fault_record();

}  // namespace weft::cuda
