// Kernels for the emulator's own test.
#include "tests/simt/planted.h"

#include <simt.h>

#include <cfloat>
#include <stdexcept>

namespace weft::planted {

template <class... Parameters, class... Arguments>
void run(dim3 grid, dim3 block, size_t shared_bytes, void (*kernel)(Parameters...), Arguments... arguments) {
  simt::launch(grid, block, shared_bytes, nullptr, kernel, arguments...);
  cudaDeviceSynchronize();
}

__global__ void scale_kernel(const float* __restrict__ x, float* __restrict__ y, int n, float factor) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = factor * __ldg(x + i);
}
void scale(const float* x, float* y, int n, float factor, cudaStream_t stream) {
  simt::launch(dim3(3), dim3(64), 0, stream, scale_kernel, x, y, n, factor);
}

template <class T>
__device__ __forceinline__ T sum_of_warp(T x) {
  for (int offset = 16; offset > 0; offset >>= 1) x += __shfl_down_sync(~0u, x, offset);
  return x;
}
template <int kThreads, class T>
__device__ T sum_of_block(T x) {
  __shared__ T parts[kThreads / 32];
  x = sum_of_warp(x);
  __syncthreads();  // of an earlier call
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x < kThreads / 32 ? parts[threadIdx.x] : T(0);
  return sum_of_warp(x);
}
template <int kThreads>
__global__ void __launch_bounds__(kThreads) block_sums_kernel(const float* x, float* sums, int n) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float sum = sum_of_block<kThreads>(i < n ? x[i] : 0.0f);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
void block_sums(const float* x, float* sums, int n, cudaStream_t stream) {
  simt::launch(dim3((n + 255) / 256), dim3(256), 0, stream, block_sums_kernel<256>, x, sums, n);
}

__global__ void softmax_kernel(const float* x, float* y, int columns) {
  float* row = static_cast<float*>(simt::dynamic_shared());
  __shared__ float shared_sum, shared_max[4];
  x += size_t{blockIdx.x} * columns;
  y += size_t{blockIdx.x} * columns;
  float highest = -FLT_MAX;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) highest = fmaxf(highest, row[i] = x[i]);
  for (int mask = 16; mask > 0; mask >>= 1) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, mask));
  if (threadIdx.x % 32 == 0) shared_max[threadIdx.x / 32] = highest;
  __syncthreads();
  for (int i = 0; i < 4; ++i) highest = fmaxf(highest, shared_max[i]);
  float sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] = __expf(row[i] - highest);
  sum = sum_of_block<128>(sum);
  if (threadIdx.x == 0) shared_sum = sum;
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += blockDim.x) y[i] = row[i] / shared_sum;
}
void softmax(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
  simt::launch(dim3(rows), dim3(128), columns * sizeof(float), stream, softmax_kernel, x, y, columns);
}

__global__ void transpose_kernel(const float* x, float* y, int rows, int columns) {
  __shared__ __align__(16) float tile[32][33];
  const int row = blockIdx.y * 32, column = blockIdx.x * 32, lane = threadIdx.x;
  for (int i = threadIdx.y; i < 32; i += 8) {
    if (row + i < rows && column + lane < columns) tile[i][lane] = x[(row + i) * columns + column + lane];
  }
  __syncthreads();
  for (int i = threadIdx.y; i < 32; i += 8) {
    if (column + i < columns && row + lane < rows) y[(column + i) * rows + row + lane] = tile[lane][i];
  }
}
void transpose(const float* x, float* y, int rows, int columns, cudaStream_t stream) {
  const dim3 grid((columns + 31) / 32, (rows + 31) / 32);
  simt::launch(grid, dim3(32, 8), 0, stream, transpose_kernel, x, y, rows, columns);
}

__global__ void histogram_kernel(const int* x, int* counts, float* weights, int n, int bins) {
  __shared__ int local[64];
  if (threadIdx.x < 64) local[threadIdx.x] = 0;
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    atomicAdd(&local[x[i]], 1);
    atomicAdd(&weights[x[i]], 0.5f);
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < bins) atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}
void histogram(const int* x, int* counts, float* weights, int n, int bins, cudaStream_t stream) {
  simt::launch(dim3((n + 127) / 128), dim3(128), 0, stream, histogram_kernel, x, counts, weights, n, bins);
}

__global__ void sum_by_last_block_kernel(const float* x, float* partial, unsigned* counter, float* sum, int n) {
  __shared__ bool last;
  const int i = blockIdx.x * 64 + threadIdx.x;
  const float part = sum_of_block<64>(i < n ? x[i] : 0.0f);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = part;
    __threadfence();
    last = atomicInc(counter, gridDim.x - 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (!last) return;
  float all = 0.0f;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += 64) all += partial[b];
  all = sum_of_block<64>(all);
  if (threadIdx.x == 0) *sum = all;
}
void sum_by_last_block(const float* x, float* partial, unsigned* counter, float* sum, int n) {
  run(dim3((n + 63) / 64), dim3(64), 0, sum_by_last_block_kernel, x, partial, counter, sum, n);
}

__global__ void warp_functions_kernel(uint64_t* results) {
  const unsigned lane = threadIdx.x, active = __activemask();
  int number = 0;
  const auto put = [&](uint64_t value) { results[32 * number++ + lane] = value; };
  put(__shfl_sync(~0u, lane, 5));
  put(__shfl_sync(~0u, lane, 9, 8));
  put(__shfl_up_sync(~0u, static_cast<uint8_t>(lane), 3));
  put(__shfl_down_sync(~0u, static_cast<uint64_t>(lane) << 40, 2, 16));
  put(__shfl_xor_sync(~0u, static_cast<uint16_t>(lane), 7));
  put(__ballot_sync(~0u, lane % 3 == 0));
  put(__any_sync(~0u, lane == 31) + 2 * __any_sync(~0u, lane > 31));
  put(__all_sync(~0u, lane < 32) + 2 * __all_sync(~0u, lane > 0));
  put(__match_any_sync(~0u, lane / 8));
  put(__syncthreads_count(lane < 7));
  put(__syncthreads_and(lane < 32) + 2 * __syncthreads_and(lane < 31));
  put(__syncthreads_or(lane == 3) + 2 * __syncthreads_or(lane == 40) + 4 * (active == ~0u));
}
void warp_functions(uint64_t* results) { run(dim3(1), dim3(32), 0, warp_functions_kernel, results); }

__global__ void other_functions_kernel(double* r) {
  *r++ = __popc(0xf0f0u) + __clz(1) + __ffs(8) + __clz(0);        // 8 + 31 + 4 + 32
  *r++ = __umulhi(0x80000000u, 6u);                               // 3
  *r++ = static_cast<double>(__umul64hi(uint64_t{1} << 63, 10));  // 5
  *r++ = __float_as_int(1.0f) == 0x3f800000 && __int_as_float(0x40000000) == 2.0f && __brev(1u) == 1u << 31;
  *r++ = rsqrtf(4.0f) + rsqrt(16.0);                                                 // 0.75
  *r++ = __expf(0.0f) + __logf(1.0f) + __powf(2.0f, 3.0f) + __fdividef(1.0f, 4.0f);  // 9.25
  *r++ = min(3, 4u) + max(1.5f, 2) + __saturatef(7.0f) + __float2int_rn(2.5f);       // 3 + 2 + 1 + 2
  float4 quad = make_float4(1, 2, 3, 4);
  __stcs(&quad, __ldcs(&quad));
  *r++ = quad.x + quad.w;  // 5
  int number = 0x7fffffff;
  atomicAdd(&number, 1);
  unsigned bits = 12;
  atomicOr(&bits, 1u);
  atomicAnd(&bits, 5u);
  atomicXor(&bits, 2u);
  *r++ = number == static_cast<int>(0x80000000) && bits == 7 && atomicCAS(&bits, 7u, 1u) == 7 && bits == 1;
  double real = 1.5;
  atomicAdd(&real, 2.0);
  atomicMax(&real, 3.0);
  atomicMin(&real, 9.0);
  const double before = atomicExch(&real, 3.5);
  *r++ = real + before;  // 7
}
void other_functions(double* results) { run(dim3(1), dim3(1), 0, other_functions_kernel, results); }

__global__ void rotate_kernel(double2* x) { x[threadIdx.x] = __shfl_sync(~0u, x[threadIdx.x], (threadIdx.x + 1) % 32); }
void rotate(double2* x) { run(dim3(1), dim3(32), 0, rotate_kernel, x); }

__global__ void coordinates_kernel(int* counts) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  counts[block * blockDim.x * blockDim.y * blockDim.z + thread] += 1;
}
void coordinates(int* counts, dim3 grid, dim3 block) { run(grid, block, 0, coordinates_kernel, counts); }

// ---- mistakes ----
__global__ void out_of_bounds_global_kernel(const float* x, float* y, int n, bool fixed) {
  const int i = threadIdx.x;
  if (fixed ? i < n : i <= n) y[i] = x[i];
}
void out_of_bounds_global(const float* x, float* y, int n, bool fixed) {
  run(dim3(1), dim3(128), 0, out_of_bounds_global_kernel, x, y, n, fixed);
}

__global__ void out_of_bounds_static_kernel(float* y, bool fixed) {
  __shared__ float array[64];
  float* p = array;  // so that no array's type is in sight
  p[threadIdx.x + !fixed] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = p[threadIdx.x];
}
void out_of_bounds_static(float* y, bool fixed) { run(dim3(1), dim3(64), 0, out_of_bounds_static_kernel, y, fixed); }

__global__ void out_of_bounds_dynamic_kernel(float* y) {
  float* array = static_cast<float*>(simt::dynamic_shared());
  if (threadIdx.x < 63) array[threadIdx.x] = 1.0f;
  __syncthreads();
  y[threadIdx.x] = array[threadIdx.x];
}
void out_of_bounds_dynamic(float* y, bool fixed) {
  const size_t bytes = (fixed ? 64 : 63) * sizeof(float);
  run(dim3(1), dim3(64), bytes, out_of_bounds_dynamic_kernel, y);
}

__global__ void write_behind_dynamic_kernel(bool fixed) {
  static_cast<float*>(simt::dynamic_shared())[threadIdx.x + !fixed] = 1.0f;
}
void write_behind_dynamic(bool fixed) {
  run(dim3(1), dim3(64), 64 * sizeof(float), write_behind_dynamic_kernel, fixed);
}

__global__ void misaligned_vector_kernel(const float* x, float* y, bool fixed) {
  const float4 v = reinterpret_cast<const float4*>(x + !fixed)[threadIdx.x];
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
void misaligned_vector(const float* x, float* y, bool fixed) {
  run(dim3(1), dim3(4), 0, misaligned_vector_kernel, x, y, fixed);
}

__global__ void divergent_barrier_kernel(float* y, bool fixed) {
  if (fixed || threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  y[threadIdx.x] = 1.0f;
}
void divergent_barrier(float* y, bool fixed) { run(dim3(1), dim3(64), 0, divergent_barrier_kernel, y, fixed); }

__global__ void early_return_kernel(float* y, int n, bool fixed) {
  const int i = threadIdx.x;
  if (!fixed && i >= n) return;
  __syncthreads();
  if (i < n) y[i] = 1.0f;
}
void early_return(float* y, int n, bool fixed) { run(dim3(1), dim3(64), 0, early_return_kernel, y, n, fixed); }

__global__ void wrong_mask_kernel(float* y, bool fixed) {
  float x = threadIdx.x;
  if (threadIdx.x % 32 < 16) x += __shfl_xor_sync(fixed ? 0xffffu : ~0u, x, 8);
  y[threadIdx.x] = x;
}
void wrong_mask(float* y, bool fixed) { run(dim3(1), dim3(64), 0, wrong_mask_kernel, y, fixed); }

__global__ void lane_outside_mask_kernel(float* y, bool fixed) {
  float x = threadIdx.x;
  if (threadIdx.x < 16) x = __shfl_sync(0xffffu, x, fixed ? 3 : 20);
  y[threadIdx.x] = x;
}
void lane_outside_mask(float* y, bool fixed) { run(dim3(1), dim3(32), 0, lane_outside_mask_kernel, y, fixed); }

__global__ void partial_warp_kernel(float* y) {
  const float x = sum_of_warp(1.0f);
  if (threadIdx.x % 32 == 0) y[threadIdx.x / 32] = x;
}
void partial_warp(float* y, bool fixed) { run(dim3(1), dim3(fixed ? 64 : 48), 0, partial_warp_kernel, y); }

__global__ void race_without_barrier_kernel(const float* x, float* y, bool fixed) {
  __shared__ float array[64];
  array[threadIdx.x] = x[threadIdx.x];
  if (fixed) __syncthreads();
  y[threadIdx.x] = array[63 - threadIdx.x];
}
void race_without_barrier(const float* x, float* y, bool fixed) {
  run(dim3(1), dim3(64), 0, race_without_barrier_kernel, x, y, fixed);
}

__global__ void race_without_syncwarp_kernel(const float* x, float* y, bool fixed) {
  __shared__ float array[32];
  array[threadIdx.x] = x[threadIdx.x];
  for (unsigned half = 16; half > 0; half /= 2) {
    if (fixed) __syncwarp();
    if (threadIdx.x < half) array[threadIdx.x] += array[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *y = array[0];
}
void race_without_syncwarp(const float* x, float* y, bool fixed) {
  run(dim3(1), dim3(32), 0, race_without_syncwarp_kernel, x, y, fixed);
}
void warp_sum(const float* x, float* sum) { race_without_syncwarp(x, sum, true); }

__global__ void race_by_reuse_kernel(const float* x, float* y, bool fixed) {
  __shared__ float array[64];
  float sum = 0.0f;
  for (int round = 0; round < 3; ++round) {
    array[threadIdx.x] = x[threadIdx.x] + round;
    __syncthreads();
    sum += array[(threadIdx.x + 1) % 64];
    if (fixed) __syncthreads();
  }
  y[threadIdx.x] = sum;
}
void race_by_reuse(const float* x, float* y, bool fixed) {
  run(dim3(1), dim3(64), 0, race_by_reuse_kernel, x, y, fixed);
}

__global__ void race_in_block_kernel(const int* index, float* y, bool fixed) {
  if (fixed) {
    atomicAdd(&y[index[threadIdx.x]], 1.0f);
  } else {
    y[index[threadIdx.x]] += 1.0f;
  }
}
void race_in_block(const int* index, float* y, bool fixed) {
  run(dim3(1), dim3(64), 0, race_in_block_kernel, index, y, fixed);
}

__global__ void race_between_blocks_kernel(float* y, bool fixed) {
  if (fixed) {
    atomicAdd(&y[threadIdx.x], 1.0f);
  } else {
    y[threadIdx.x] += 1.0f;
  }
}
void race_between_blocks(float* y, bool fixed) { run(dim3(2), dim3(32), 0, race_between_blocks_kernel, y, fixed); }

__global__ void uninitialised_static_kernel(float* y, bool fixed) {
  __shared__ float array[64];
  if (fixed || threadIdx.x != blockIdx.x) array[threadIdx.x] = 1.0f;
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = array[threadIdx.x];
}
void uninitialised_static(float* y, bool fixed) { run(dim3(2), dim3(64), 0, uninitialised_static_kernel, y, fixed); }

template <class T, int kSize>
__global__ void uninitialised_template_kernel(T* y, bool fixed) {
  __shared__ T first[kSize];
  __shared__ T second[kSize];
  if (fixed || threadIdx.x != blockIdx.x) first[threadIdx.x] = second[threadIdx.x] = T(0.5);
  __syncthreads();
  y[blockIdx.x * kSize + threadIdx.x] = first[threadIdx.x] + second[threadIdx.x];
}
void uninitialised_template(float* y, bool fixed) {
  run(dim3(2), dim3(64), 0, uninitialised_template_kernel<float, 64>, y, fixed);
}

__global__ void uninitialised_dynamic_kernel(float* y, bool fixed) {
  float* array = static_cast<float*>(simt::dynamic_shared());
  if (fixed || threadIdx.x != blockIdx.x) array[threadIdx.x] = 1.0f;
  __syncthreads();
  y[blockIdx.x * 64 + threadIdx.x] = array[threadIdx.x];
}
void uninitialised_dynamic(float* y, bool fixed) {
  run(dim3(2), dim3(64), 64 * sizeof(float), uninitialised_dynamic_kernel, y, fixed);
}

__global__ void trap_kernel(bool fixed) {
  if (!fixed && threadIdx.x == 3) __trap();
}
void trap(bool fixed) { run(dim3(1), dim3(32), 0, trap_kernel, fixed); }

void launch_trap(cudaStream_t stream) { simt::launch(dim3(1), dim3(32), 0, stream, trap_kernel, false); }

__global__ void throwing_kernel(bool fixed) {
  if (!fixed && threadIdx.x == 3) throw std::runtime_error("from a kernel");
}
void throwing(bool fixed) { run(dim3(1), dim3(32), 0, throwing_kernel, fixed); }

__global__ void nothing_kernel() {}
void configure(dim3 grid, dim3 block, size_t shared_bytes) { run(grid, block, shared_bytes, nothing_kernel); }

}  // namespace weft::planted
