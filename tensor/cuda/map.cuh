// Elementwise kernels: out[i] = f(in[i]…) for operands of any strides. One kernel serves all layouts: with the loop
// nest merged, dense operands are one dimension, which needs no division. Where every operand is dense along the
// innermost dimension, or stands still along it (a bias), threads read and write 128 bits at once.
#pragma once

#include <tuple>
#include <utility>

#include "tensor/cuda/gpu.cuh"
#include "tensor/loop_nest.h"

namespace weft::WEFT_GPU {

/// n / divisor for n below 2^31, by a multiplication (Granlund and Montgomery 1994).
struct Divider {
  uint32_t divisor = 1, magic = 0, shift = 0;

  Divider() = default;
  explicit Divider(int64_t d) : divisor(static_cast<uint32_t>(d)) {
    while ((uint64_t{1} << shift) < divisor) ++shift;
    magic = static_cast<uint32_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - divisor)) / divisor + 1);
  }
  __device__ uint32_t operator()(uint32_t n) const { return (__umulhi(n, magic) + n) >> shift; }
  /// What the division leaves of n, which becomes the quotient: the index along one dimension, then along the others.
  __device__ __forceinline__ uint32_t split(uint32_t& n) const {
    const uint32_t all = n;
    n = (*this)(all);
    return all - n * divisor;
  }
};

/// Where each operand's elements are, by the index of a chunk of V elements of the innermost dimension.
template <int N>
struct MapLayout {
  uint32_t chunks = 0;
  uint32_t tail = 0;   // elements behind the last chunk; of one dimension only
  uint32_t still = 0;  // bit i: operand i is one value along the innermost dimension
  int ndim = 1;
  Divider sizes[kMaxDims];
  int64_t strides[N][kMaxDims] = {};

  /// Adds to each operand's offset where chunk i is.
  __device__ __forceinline__ void add_offsets(uint32_t i, int64_t* offset) const {
    for (int d = 0; d + 1 < ndim; ++d) {
      const int64_t at = sizes[d].split(i);
      WEFT_UNROLL
      for (int k = 0; k < N; ++k) offset[k] += at * strides[k][d];
    }
    WEFT_UNROLL
    for (int k = 0; k < N; ++k) offset[k] += i * strides[k][ndim - 1];
  }
};

/// V elements from p on, or one of them V times.
template <int V, class T>
__device__ __forceinline__ Pack<T, V> load_pack(const T* p, bool still) {
  if (!still) return *reinterpret_cast<const Pack<T, V>*>(p);
  Pack<T, V> values;
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) values.v[k] = *p;
  return values;
}

template <int V, class F, class Out, class... In>
__device__ __forceinline__ void apply_pack(const F& f, Out* out, const Pack<In, V>&... in) {
  Pack<Out, V> results;
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) results.v[k] = static_cast<Out>(f(static_cast<compute_t<In>>(in.v[k])...));
  *reinterpret_cast<Pack<Out, V>*>(out) = results;
}

/// One chunk: V elements at once, or `count` one by one.
template <int V, class F, class Out, class... In, size_t... I>
__device__ __forceinline__ void map_chunk(const F& f, uint32_t still, const int64_t* offset, int count, Out* out,
                                          std::index_sequence<I...>, const In*... in) {
  if (V > 1 && count == V) {
    apply_pack<V, F, Out, In...>(f, out + offset[0], load_pack<V>(in + offset[I + 1], still & (2u << I))...);
    return;
  }
  for (int k = 0; k < count; ++k)
    out[offset[0] + k] =
        static_cast<Out>(f(static_cast<compute_t<In>>(in[offset[I + 1] + (still & (2u << I) ? 0 : k)])...));
}

template <int V, class F, class Out, class... In>
__global__ void __launch_bounds__(kBlock)
    map_kernel(F f, MapLayout<sizeof...(In) + 1> layout, Out* out, const In*... in) {
  constexpr int N = sizeof...(In) + 1;
  const uint32_t step = gridDim.x * blockDim.x;
  uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t all = layout.chunks + (layout.tail > 0);
  for (; i < all; i += step) {
    int64_t offset[N];
    WEFT_UNROLL
    for (int k = 0; k < N; ++k) offset[k] = 0;
    layout.add_offsets(i, offset);
    map_chunk<V>(f, layout.still, offset, i < layout.chunks ? V : static_cast<int>(layout.tail), out,
                 std::index_sequence_for<In...>{}, in...);
  }
}

/// The nest as chunks of V elements; false where an operand's layout or alignment does not allow it.
template <int N>
bool as_chunks(const LoopNest<N>& nest, int64_t V, const std::array<const void*, N>& data,
               const std::array<int64_t, N>& bytes, MapLayout<N>& layout) {
  const bool flat = nest.ndim == 1;
  if (V > 1 && !flat && nest.sizes[0] % V != 0) return false;
  layout = {};
  layout.ndim = static_cast<int>(nest.ndim);
  layout.chunks = static_cast<uint32_t>(nest.numel / V);
  layout.tail = static_cast<uint32_t>(nest.numel % V);
  for (int64_t d = 0; d < nest.ndim; ++d)
    layout.sizes[d] = Divider(d == 0 ? std::max<int64_t>(nest.sizes[0] / V, 1) : nest.sizes[d]);
  for (size_t k = 0; k < N; ++k) {
    const bool still = nest.strides[k][0] == 0 && k > 0;
    if (V > 1 && !still && (nest.strides[k][0] != 1 || !is_aligned(data[k], V * bytes[k]))) return false;
    if (V > 1 && still) layout.still |= 1u << k;
    layout.strides[k][0] = nest.strides[k][0] * V;
    for (int64_t d = 1; d < nest.ndim; ++d) {
      if (V > 1 && !still && nest.strides[k][d] % V != 0) return false;
      layout.strides[k][d] = nest.strides[k][d];
    }
  }
  return true;
}

/// Runs `part` on pieces of the nest that 32-bit indices reach, with the elements each operand is ahead.
template <int N, class Part>
void in_pieces(const LoopNest<N>& nest, std::array<int64_t, N> ahead, const Part& part) {
  constexpr int64_t kMostElements = int64_t{1} << 30;
  if (nest.numel <= kMostElements) return part(nest, ahead);
  const auto outer = static_cast<size_t>(nest.ndim - 1);
  LoopNest<N> half = nest;
  const int64_t all = nest.sizes[outer], first = all / 2;
  half.sizes[outer] = first;
  half.numel = nest.numel / all * first;
  in_pieces<N>(half, ahead, part);
  for (size_t k = 0; k < N; ++k) ahead[k] += first * nest.strides[k][outer];
  half.sizes[outer] = all - first;
  half.numel = nest.numel / all * (all - first);
  in_pieces<N>(half, ahead, part);
}

template <class F, class Out, class... In, size_t... I>
void map_pointers(const F& f, const LoopNest<sizeof...(In) + 1>& nest, std::index_sequence<I...>, Out* out,
                  const In*... in) {
  constexpr int N = sizeof...(In) + 1;
  constexpr int V = static_cast<int>(16 / std::max({sizeof(Out), sizeof(In)...}));
  in_pieces<N>(nest, {}, [&](const LoopNest<N>& piece, const std::array<int64_t, N>& ahead) {
    MapLayout<N> layout;
    Out* const to = out + ahead[0];
    const std::tuple<const In*...> from{in + ahead[I + 1]...};
    const std::array<const void*, N> data{to, std::get<I>(from)...};
    if (as_chunks<N>(piece, V, data, {sizeof(Out), sizeof(In)...}, layout)) {
      launch(blocks_for(layout.chunks + 1), kBlock, 0, map_kernel<V, F, Out, In...>, f, layout, to,
             std::get<I>(from)...);
    } else {
      as_chunks<N>(piece, 1, data, {}, layout);
      launch(blocks_for(layout.chunks), kBlock, 0, map_kernel<1, F, Out, In...>, f, layout, to, std::get<I>(from)...);
    }
  });
}

/// out[i] = f(in[i]…): elements are loaded in their compute type, f's result is converted to Out. `in` have out's
/// sizes.
template <class Out, class... In, class F, class... Tensors>
void map(const F& f, const Tensor& out, const Tensors&... in) {
  static_assert(sizeof...(Tensors) == sizeof...(In));
  if (out.numel() == 0) return;
  map_pointers(f, LoopNest<sizeof...(In) + 1>({&out, &in...}), std::index_sequence_for<In...>{}, out.data<Out>(),
               static_cast<const In*>(in.template data<In>())...);
}

}  // namespace weft::WEFT_GPU
