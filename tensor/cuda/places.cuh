// Kernels that go on from an element's place by an index of their own: one call an element (or a chunk of them), with
// where it is in each operand.
#pragma once

#include "tensor/cuda/map.cuh"

namespace weft::WEFT_GPU {

template <int N>
struct Places {
  MapLayout<N> layout;
  int64_t ahead[N];  // elements before the first place

  /// The offsets of place i, in elements.
  __device__ void find(uint32_t i, int64_t* offset) const {
    WEFT_UNROLL
    for (int k = 0; k < N; ++k) offset[k] = ahead[k];
    layout.add_offsets(i, offset);
  }
};

/// Calls part(places, how many) for each piece of the nest that 32-bit indices reach.
template <int N, class Part>
void each_piece(const LoopNest<N>& nest, const Part& part) {
  in_pieces<N>(nest, {}, [&](const LoopNest<N>& piece, const std::array<int64_t, N>& ahead) {
    Places<N> places{};
    as_chunks<N>(piece, 1, {}, {}, places.layout);
    for (size_t k = 0; k < N; ++k) places.ahead[k] = ahead[k];
    part(places, places.layout.chunks);
  });
}

template <int N, class F>
__global__ void __launch_bounds__(kBlock) each_place_kernel(F f, Places<N> places) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < places.layout.chunks; i += gridDim.x * blockDim.x) {
    int64_t offset[N];
    places.find(i, offset);
    f(offset);
  }
}

/// f(offsets) for every element of the operands, which all have the first one's sizes.
template <int N, class F>
void each_place(const F& f, const LoopNest<N>& nest) {
  if (nest.numel == 0) return;
  each_piece<N>(nest, [&](const Places<N>& places, uint32_t count) {
    launch(blocks_for(count), kBlock, 0, each_place_kernel<N, F>, f, places);
  });
}

/// f(offsets) for every V elements of the innermost dimension; false where operands do not allow chunks of V.
template <int V, int N, class F>
bool each_chunk(const F& f, const LoopNest<N>& nest, const std::array<const void*, N>& data,
                const std::array<int64_t, N>& bytes) {
  Places<N> places{};
  if (nest.numel % V != 0 || nest.numel / V > int64_t{1} << 30 || !as_chunks<N>(nest, V, data, bytes, places.layout))
    return false;
  launch(blocks_for(places.layout.chunks), kBlock, 0, each_place_kernel<N, F>, f, places);
  return true;
}

}  // namespace weft::WEFT_GPU
