// How kernels report what they find wrong with their input; they go on inside of their memory.
#pragma once

#include "tensor/cuda/fault.h"
#include "tensor/cuda/gpu.cuh"

namespace weft::WEFT_GPU {

using cuda::Fault;

/// Where and what a kernel checks.
struct IndexCheck {
  Fault* fault;
  const char *op, *what;
  int64_t size;

  /// True where `value` is in [0, size); else it is reported.
  __device__ bool operator()(int64_t value, int64_t position) const {
    if (value >= 0 && value < size) return true;
    if (atomicCAS(&fault->set, 0, 1) == 0) {
      fault->value = value;
      fault->position = position;
      fault->size = size;
      fault->op = op;
      fault->what = what;
    }
    return false;
  }
};

/// `op` and `what` are string literals.
inline IndexCheck index_check(const char* op, const char* what, int64_t size) {
  return {cuda::fault_record(), op, what, size};
}

}  // namespace weft::WEFT_GPU
