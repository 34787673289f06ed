// Dropout: element i, counted in memory order, uses word i % 4 of block `offset + i / 4`, on every device the same.
#include "tensor/cuda/map.cuh"
#include "tensor/functors.h"
#include "tensor/step_values.h"

namespace weft::WEFT_GPU {
namespace {

/// Which draws are kept, and what those are multiplied by.
struct Keep {
  uint32_t threshold;  // of the word: p · 2^32
  double scale;
};

Keep keep_of(double p) { return {static_cast<uint32_t>(p * 0x1p32), 1 / (1 - p)}; }

/// V elements a thread and step, a whole number of Philox blocks: 128 bits, or more where that is less than a block.
template <class T>
inline constexpr int kDropoutPack = sizeof(T) == 2 ? 8 : 4;

/// The values of V elements, and whether they are kept; chosen, not multiplied, so that what is dropped is 0 even where
/// it was infinite.
template <int V, class C>
__device__ __forceinline__ void drop(const Philox& state, int64_t chunk, const Keep& keep, C (&values)[V],
                                     bool (&kept)[V]) {
  WEFT_UNROLL
  for (int b = 0; b < V / 4; ++b) {
    const PhiloxBlock words = philox(state.seed, state.offset + static_cast<uint64_t>(chunk * (V / 4) + b));
    WEFT_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int i = 4 * b + k;
      kept[i] = words[k] >= keep.threshold;
      values[i] = kept[i] ? values[i] * static_cast<C>(keep.scale) : C(0);
    }
  }
}

/// Packs are as wide as one access may be; f64 takes two.
template <int V, class T>
__device__ __forceinline__ void load_values(const T* x, int count, bool packed, compute_t<T> (&values)[V]) {
  constexpr int W = sizeof(T) == 8 ? 2 : V;
  WEFT_UNROLL
  for (int i = 0; i < V; i += W) {
    Pack<T, W> pack;
    if (packed && count == V) {
      pack = *reinterpret_cast<const Pack<T, W>*>(x + i);
    } else {
      WEFT_UNROLL
      for (int k = 0; k < W; ++k) pack.v[k] = i + k < count ? x[i + k] : static_cast<T>(0.0f);
    }
    WEFT_UNROLL
    for (int k = 0; k < W; ++k) values[i + k] = static_cast<compute_t<T>>(pack.v[k]);
  }
}

template <int V, class T, class From>
__device__ __forceinline__ void store_values(T* y, int count, bool packed, const From (&values)[V]) {
  constexpr int W = sizeof(T) == 8 ? 2 : V;
  WEFT_UNROLL
  for (int i = 0; i < V; i += W) {
    Pack<T, W> pack;
    WEFT_UNROLL
    for (int k = 0; k < W; ++k) pack.v[k] = static_cast<T>(values[i + k]);
    if (packed && count == V) {
      *reinterpret_cast<Pack<T, W>*>(y + i) = pack;
    } else {
      WEFT_UNROLL
      for (int k = 0; k < W; ++k)
        if (i + k < count) y[i + k] = pack.v[k];
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    dropout_kernel(const T* x, int64_t n, Keep keep, StepValue<Philox> state, bool packed, T* out, bool* mask) {
  constexpr int V = kDropoutPack<T>;
  const Philox place = state.get();
  const int64_t chunks = ceil_div(n, V);
  for (int64_t chunk = grid_index(); chunk < chunks; chunk += grid_size()) {
    const int64_t at = chunk * V, rest = n - at;
    const int count = rest < V ? static_cast<int>(rest) : V;
    compute_t<T> values[V];
    bool kept[V];
    load_values<V>(x + at, count, packed, values);
    drop<V>(place, chunk, keep, values, kept);
    store_values<V>(out + at, count, packed, values);
    store_values<V>(mask + at, count, packed, kept);
  }
}

/// A bias of `columns` elements goes along the rows of x. Without a mask nothing is dropped.
template <class T>
__global__ void __launch_bounds__(kBlock)
    dropout_add_kernel(const T* x, const T* bias, const T* residual, int64_t n, int64_t columns, Keep keep,
                       StepValue<Philox> state, bool packed, T* out, bool* mask) {
  constexpr int V = kDropoutPack<T>;
  using C = compute_t<T>;
  const Philox place = state.get();
  const int64_t chunks = ceil_div(n, V), step = grid_size() * V % columns;
  int64_t column = grid_index() * V % columns;
  for (int64_t chunk = grid_index(); chunk < chunks; chunk += grid_size()) {
    const int64_t at = chunk * V, rest = n - at;
    const int count = rest < V ? static_cast<int>(rest) : V;
    C values[V], added[V];
    bool kept[V];
    load_values<V>(x + at, count, packed, values);
    if (bias) {
      if (columns % V == 0) {
        load_values<V>(bias + column, V, packed, added);
      } else {
        int64_t c = column;
        WEFT_UNROLL
        for (int k = 0; k < V; ++k) {
          added[k] = static_cast<C>(bias[c]);
          if (++c == columns) c = 0;
        }
      }
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) values[k] += added[k];
      column += step;
      if (column >= columns) column -= columns;
    }
    if (mask) {
      drop<V>(place, chunk, keep, values, kept);
      store_values<V>(mask + at, count, packed, kept);
    }
    load_values<V>(residual + at, count, packed, added);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) values[k] += added[k];
    store_values<V>(out + at, count, packed, values);
  }
}

/// Whether all may be read and written by the widest access that V elements of them take.
template <class T>
bool packs_fit(std::initializer_list<const void*> operands, const bool* mask) {
  return std::ranges::all_of(operands, [](const void* p) { return is_aligned(p, 16); }) &&
         is_aligned(mask, kDropoutPack<T>);
}

struct Dropped {
  double scale;
  template <class T>
  __device__ T operator()(T g, bool keep) const {
    return keep ? g * static_cast<T>(scale) : T(0);
  }
};

}  // namespace

void dropout(const Tensor& x, double p, Philox state, Tensor& out, Tensor& mask) {
  WEFT_ASSERT(x.strides() == out.strides() && x.strides() == mask.strides());
  const StepValue<Philox> place = step_value(state);
  if (x.numel() == 0) return;
  dispatch_floating("dropout", x.dtype(), [&]<class T>() {
    const T* const from = x.data<T>();
    T* const to = out.data<T>();
    bool* const kept = mask.data<bool>();
    constexpr int V = kDropoutPack<T>;
    launch(blocks_for(ceil_div(x.numel(), V)), kBlock, 0, dropout_kernel<T>, from, x.numel(), keep_of(p), place,
           packs_fit<T>({from, to}, kept), to, kept);
  });
}

void dropout_grad(const Tensor& dy, const Tensor& mask, double scale, Tensor& dx) {
  dispatch_floating("dropout", dx.dtype(), [&]<class T>() { map<T, T, bool>(Dropped{scale}, dx, dy, mask); });
}

void dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual, double p, Philox state, Tensor& out,
                 Tensor& mask) {
  WEFT_ASSERT(x.is_contiguous() && residual.is_contiguous() && out.is_contiguous() && mask.defined() == (p > 0));
  const StepValue<Philox> place = mask.defined() ? step_value(state) : StepValue<Philox>{};
  if (x.numel() == 0) return;
  dispatch_floating("dropout_add", x.dtype(), [&]<class T>() {
    const T *const from = x.data<T>(), *const added = bias.defined() ? bias.data<T>() : nullptr,
                   *const rest = residual.data<T>();
    T* const to = out.data<T>();
    bool* const kept = mask.defined() ? mask.data<bool>() : nullptr;
    constexpr int V = kDropoutPack<T>;
    launch(blocks_for(ceil_div(x.numel(), V)), kBlock, 0, dropout_add_kernel<T>, from, added, rest, x.numel(),
           bias.defined() ? bias.numel() : int64_t{1}, keep_of(p), place, packs_fit<T>({from, added, rest, to}, kept),
           to, kept);
  });
}

}  // namespace weft::WEFT_GPU
