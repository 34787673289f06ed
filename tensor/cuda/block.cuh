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
/// out = Σ x, by one block.
template <class T>
__global__ void __launch_bounds__(kBlock) sum_kernel(const T* x, int64_t n, T* out) {
  T sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += kBlock) sum += x[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out = sum;
}
template <class T>
__device__ T block_max(T value) {
  return block_reduce(value, Max{}, Max::identity<T>());
}

/// Elements of a column up to which one thread takes it alone.
inline constexpr int64_t kAloneElements = 8;

/// A block for columns of n elements: columns side by side along x, threads that share one along y, powers of 2.
inline dim3 block_of_columns(int64_t n, int64_t columns) {
  unsigned across = kBlock;
  if (n > kAloneElements)
    for (across = 1; across < kWarp && across < columns;) across *= 2;
  return {across, kBlock / across};
}

/// What the threads of V columns have, merged into the first of them, whose threadIdx.y is 0. Once in a kernel.
template <int V, class State, class Merge>
__device__ void merge_columns(State (&states)[V], const Merge& merge) {
  const int lane = static_cast<int>(threadIdx.y), lanes = static_cast<int>(blockDim.y);
  if (lanes == 1) return;
  __shared__ State shared[kBlock * V];
  const auto slot = [&](int of_lane, int c) -> State& {
    return shared[(c * lanes + of_lane) * static_cast<int>(blockDim.x) + static_cast<int>(threadIdx.x)];
  };
  for (int half = lanes / 2; half > 0; half /= 2) {  // writers of a round are none of the slots that are read in it
    if (lane >= half && lane < 2 * half)
      for (int c = 0; c < V; ++c) slot(lane, c) = states[c];
    __syncthreads();
    if (lane < half)
      for (int c = 0; c < V; ++c) merge(states[c], slot(lane + half, c));
  }
}

}  // namespace weft::WEFT_GPU
