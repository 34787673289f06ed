// Reductions within a warp and a block. All threads of the block take part, and all get the result.
#pragma once

#include "tensor/cuda/gpu.cuh"

namespace weft::WEFT_GPU {

// clang-format off
struct Sum { template <class T> __device__ static T identity() { return T(0); }
             template <class T> __device__ T operator()(T a, T b) const { return a + b; } };
/// NaN beats all numbers.
struct Max { template <class T> __device__ static T identity() { return static_cast<T>(-INFINITY); }
             template <class T> __device__ T operator()(T a, T b) const { return a > b || a != a ? a : b; } };
// clang-format on

/// op over the `width` lanes (a power of two) that this lane is one of; the same order of operations in every lane's
/// result, so all lanes have the same bits.
template <int width = kWarp, class T, class Op>
__device__ T warp_reduce(T value, Op op) {
  WEFT_UNROLL
  for (int offset = width / 2; offset > 0; offset /= 2) value = op(value, __shfl_xor_sync(kFullWarp, value, offset));
  return value;
}

/// op over all threads of a block of a whole number of warps; `identity` changes nothing. May be called again at once.
template <class T, class Op>
__device__ T block_reduce(T value, Op op, T identity) {
  __shared__ T parts[kWarp];
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  const int warps = static_cast<int>(blockDim.x / kWarp);
  value = warp_reduce(value, op);
  if (warps == 1) return value;
  __syncthreads();  // the parts of an earlier call have been read
  if (lane == 0) parts[warp] = value;
  __syncthreads();
  return warp_reduce(lane < warps ? parts[lane] : identity, op);
}

/// Over a group of kThreads: a warp, or the whole block.
template <int kThreads, class T, class Op>
__device__ T group_reduce(T value, Op op, T identity) {
  if constexpr (kThreads == kWarp)
    return warp_reduce(value, op);
  else
    return block_reduce(value, op, identity);
}

template <class T>
__device__ T block_sum(T value) {
  return block_reduce(value, Sum{}, T(0));
}
template <class T>
__device__ T block_max(T value) {
  return block_reduce(value, Max{}, Max::identity<T>());
}

}  // namespace weft::WEFT_GPU
