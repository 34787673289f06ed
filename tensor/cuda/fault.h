// The record of what a kernel found wrong with its input, such as a label out of range. It lies in memory that the host
// sees, and is thrown when the host next waits for the device.
#pragma once

#include <cstdint>

namespace weft::cuda {

/// The first fault since the host last looked: "[op] what VALUE at position POSITION is outside of [0, SIZE)".
struct Fault {
  int32_t set;  // 0: none
  int64_t value, position, size;
  const char *op, *what;  // literals of the host
};

/// The fault record of the device in use, as kernels see it.
Fault* fault_record();

}  // namespace weft::cuda
