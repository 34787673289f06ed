// How kernels report what they find wrong with their input; they go on inside of their memory.
#pragma once

#include "tensor/cuda/fault.h"
#include "tensor/cuda/gpu.cuh"

namespace weft::WEFT_GPU {

using cuda::Fault;

/// Where and what a kernel checks.
struct IndexCheck {
  Fault* fault;
  const char *op, *what, *range;
  int64_t size;

  /// True where `value` is in [0, size); else it is reported.
  __device__ bool operator()(int64_t value, int64_t position) const {
    if (value >= 0 && value < size) return true;
    if (atomicCAS(&fault->state, Fault::none, Fault::being_written) == Fault::none) {
      fault->value = value;
      fault->position = position;
      fault->size = size;
      fault->op = op;
      fault->what = what;
      fault->range = range;
      __threadfence_system();
      atomicExch(&fault->state, Fault::complete);
    }
    return false;
  }
};

/// For an error as "[op] what VALUE … is outside of range [0, size)"; all three are string literals.
inline IndexCheck index_check(const char* op, const char* what, const char* range, int64_t size) {
  return {cuda::fault_record(), op, what, range, size};
}

}  // namespace weft::WEFT_GPU
