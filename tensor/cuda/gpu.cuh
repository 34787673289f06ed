// What every kernel source includes. Under nvcc it is CUDA; under a host compiler it is the emulator of the tests,
// whose header stands for CUDA's. Kernel sources launch through `launch` and take dynamic shared memory through
// `dynamic_shared`, so that one text serves both.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define WEFT_UNROLL _Pragma("unroll")
#else
#include <simt.h>
#define WEFT_UNROLL
#endif

#include "tensor/cuda/check.h"
#include "tensor/kernels.h"
#include "tensor/step_values.h"
#include "tensor/stream.h"

namespace weft::WEFT_GPU {

inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;
/// Threads of a block where nothing asks for another number.
inline constexpr int kBlock = 256;
/// Blocks that a multiprocessor holds at least: where it is not said, the compiler spills registers to fit one more.
inline constexpr int kResident = 2;
/// Enough blocks to fill any device: beyond, a loop in the kernel takes strides of the grid.
inline constexpr int64_t kMostBlocks = 4096;

inline cudaStream_t stream() { return static_cast<cudaStream_t>(used_stream()); }

WEFT_HD constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Blocks of `block` threads for n elements, at least one.
inline unsigned blocks_for(int64_t n, int64_t block = kBlock, int64_t most = kMostBlocks) {
  const int64_t wanted = ceil_div(n, block);
  return static_cast<unsigned>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

/// The block's dynamic shared memory, as many elements as the launch asked bytes for.
template <class T>
__device__ T* dynamic_shared() {
#ifdef __CUDACC__
  extern __shared__ __align__(16) unsigned char weft_dynamic_shared[];
  return reinterpret_cast<T*>(weft_dynamic_shared);
#else
  return static_cast<T*>(simt::dynamic_shared());
#endif
}

/// kernel(args…) on the current stream, with `shared` bytes of dynamic shared memory. Not where a captured step's
/// values are refreshed: its graph launches.
template <class... P, class... A>
void launch(dim3 grid, dim3 block, size_t shared, void (*kernel)(P...), A&&... args) {
  if (StepValues::refreshing()) return;
#ifdef __CUDACC__
  if (shared > 48 * 1024)
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream();
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<A>(args)...));
#else
  simt::launch(grid, block, shared, stream(), kernel, std::forward<A>(args)...);
#endif
}

/// The index of this thread in the grid, and how many threads the grid has, for loops over any number of elements.
__device__ __forceinline__ int64_t grid_index() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ int64_t grid_size() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// V elements that are read and written at once.
template <class T, int V>
struct alignas(sizeof(T) * V) Pack {
  T v[V];
};

template <int V, class T>
__device__ __forceinline__ Pack<T, V> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, V>*>(p);
}
template <int V, class T>
__device__ __forceinline__ void store_pack(T* p, const Pack<T, V>& values) {
  *reinterpret_cast<Pack<T, V>*>(p) = values;
}

/// Whether an address is a multiple of `bytes`.
WEFT_HD bool is_aligned(const void* p, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % static_cast<uintptr_t>(bytes) == 0;
}
/// Whether packs of V elements can be read and written from all of them on.
template <int V, class... T>
WEFT_HD bool packs_fit(const T*... p) {
  return (is_aligned(p, sizeof(Pack<T, V>)) && ...);
}

}  // namespace weft::WEFT_GPU
