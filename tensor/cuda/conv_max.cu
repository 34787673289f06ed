// The maximum over time of a convolution: a bounded tile of places is made by one product for each column of the
// kernel, which the BLAS sums up, and goes into a running maximum. Gradients are gathered from the winning windows.
#include "tensor/cuda/blas.h"
#include "tensor/cuda/block.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// What stays in the second-level cache of a large device until the maximum is taken.
constexpr int64_t kMostTileBytes = int64_t{32} << 20;

struct Sizes {
  int64_t samples, length, channels, outputs, kernel;

  Sizes(const Shape& x, const Shape& weight)
      : samples(x[0]), length(x[1]), channels(x[2]), outputs(weight[0]), kernel(weight[2]) {}
  WEFT_HD int64_t depth() const { return kernel * channels; }
};

/// The largest value and where it is. It starts as what ReLU makes of values that are not above 0.
template <class C>
struct Best {
  C value;
  int32_t place;
};

/// The first of equals wins, and NaN over all.
template <class C>
__device__ void merge(Best<C>& a, const Best<C>& b) {
  if (a.value != a.value) return;
  if (!(b.value <= a.value) || (b.value == a.value && b.place < a.place)) a = b;
}

/// Places [first, first + places) of a tile, whose samples are `step` rows apart, into best values and places; `fresh`:
/// nothing is there yet.
template <class T>
__global__ void __launch_bounds__(kBlock)
    max_kernel(int64_t columns, int64_t outputs, int64_t step, int64_t first, int64_t places, bool fresh,
               const compute_t<T>* tile, const T* bias, compute_t<T>* best, int32_t* index) {
  using C = compute_t<T>;
  const int64_t column = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  const bool inside = column < columns;
  Best<C> one[1] = {{C(0), -1}};
  if (inside) {
    const int64_t n = column / outputs, o = column % outputs;
    const C shift = bias ? static_cast<C>(bias[o]) : C(0);
    const C* const from = tile + n * step * outputs + o;
    for (int64_t p = threadIdx.y; p < places; p += blockDim.y) {
      const C value = from[p * outputs] + shift;
      if (!(value <= one[0].value) && one[0].value == one[0].value) one[0] = {value, static_cast<int32_t>(first + p)};
    }
  }
  merge_columns<1>(one, [](Best<C>& a, const Best<C>& b) { merge(a, b); });
  if (!inside || threadIdx.y > 0) return;
  Best<C> result = one[0];
  if (!fresh) {
    result = {best[column], index[column]};
    merge(result, one[0]);
  }
  best[column] = result.value;
  index[column] = result.value > C(0) ? result.place : -1;
}

/// dx[n, l] = Σ over channels whose window covers l, in their order; a warp for each place, V channels a thread.
template <int V, class T>
__global__ void __launch_bounds__(kBlock)
    grad_data_kernel(Sizes s, const T* dy, const T* weight, const int32_t* index, T* dx) {
  using C = compute_t<T>;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int64_t rows = s.samples * s.length, step = grid_size() / kWarp;
  for (int64_t row = grid_index() / kWarp; row < rows; row += step) {
    const int64_t n = row / s.length, l = row % s.length;
    for (int64_t first = 0; first < s.channels; first += kWarp * V) {
      const int64_t c = first + lane * V;
      C sum[V] = {};
      for (int64_t o = 0; o < s.outputs; o += kWarp) {
        const int64_t place = o + lane < s.outputs ? index[n * s.outputs + o + lane] : -1;
        const int64_t column = l - place;
        unsigned hits = __ballot_sync(kFullWarp, place >= 0 && column >= 0 && column < s.kernel);
        while (hits != 0) {
          const int hit = __ffs(static_cast<int>(hits)) - 1;
          hits &= hits - 1;
          const int64_t at = __shfl_sync(kFullWarp, column, hit);
          const C g = static_cast<C>(dy[n * s.outputs + o + hit]);
          if (c < s.channels) {
            const auto w = load_pack<V>(weight + (at * s.outputs + o + hit) * s.channels + c);
            WEFT_UNROLL
            for (int k = 0; k < V; ++k) sum[k] += g * static_cast<C>(w.v[k]);
          }
        }
      }
      Pack<T, V> out;
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) out.v[k] = static_cast<T>(sum[k]);
      if (c < s.channels) store_pack(dx + row * s.channels + c, out);
    }
  }
}

/// The gradient of the weights, [outputs, kernel · channels]: the winning windows in the order of samples.
template <int V, class T>
__global__ void __launch_bounds__(kBlock)
    grad_weight_kernel(Sizes s, const T* dy, const T* x, const int32_t* index, compute_t<T>* dweight) {
  using C = compute_t<T>;
  const int64_t packs = s.depth() / V, all = s.outputs * packs;
  for (int64_t i = grid_index(); i < all; i += grid_size()) {
    const int64_t o = i / packs, d = i % packs * V;
    C sum[V] = {};
    for (int64_t n = 0; n < s.samples; ++n) {
      const int64_t place = index[n * s.outputs + o];
      if (place < 0) continue;
      const C g = static_cast<C>(dy[n * s.outputs + o]);
      const auto values = load_pack<V>(x + (n * s.length + place) * s.channels + d);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) sum[k] += g * static_cast<C>(values.v[k]);
    }
    Pack<C, V> out;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) out.v[k] = sum[k];
    store_pack(dweight + o * s.depth() + d, out);
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    grad_bias_kernel(int64_t samples, int64_t outputs, const T* dy, const int32_t* index, T* dbias) {
  using C = compute_t<T>;
  const int64_t o = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  C sum[1] = {};
  if (o < outputs)
    for (int64_t n = threadIdx.y; n < samples; n += blockDim.y)
      if (index[n * outputs + o] >= 0) sum[0] += static_cast<C>(dy[n * outputs + o]);
  merge_columns<1>(sum, [](C& a, C b) { a += b; });
  if (o < outputs && threadIdx.y == 0) dbias[o] = static_cast<T>(sum[0]);
}

/// f<V>() with the channels that a thread takes at once.
template <class T, class F, class... P>
void with_packs(int64_t channels, const F& f, const P*... pointers) {
  constexpr int V = 16 / sizeof(T);
  channels % V == 0 && packs_fit<V>(pointers...) ? f.template operator()<V>() : f.template operator()<1>();
}

/// One matrix [outputs, channels] for each column of the kernel.
Tensor by_column(const Tensor& weight) { return raw::contiguous(raw::permute(weight, {2, 0, 1})); }

/// Places [first, first + places) of samples from `sample` on into the tile, rows of one sample after another's.
template <class T>
void fill_tile(const Sizes& s, const T* x, const T* columns, int64_t rows, int64_t row, Tensor& tile) {
  for (int64_t j = 0; j < s.kernel; ++j) {
    blas::Gemm g{.m = rows, .n = s.outputs, .k = s.channels, .dtype = dtype_of<T>::value, .out_dtype = tile.dtype()};
    g.a = {.data = x + (row + j) * s.channels, .row = s.channels};
    g.b = {.data = columns + j * s.outputs * s.channels, .row = s.channels, .transposed = true};
    g.c = tile.raw_data();
    g.c_row = s.outputs;
    g.accumulate = j > 0;
    blas::gemm(g);
  }
}

}  // namespace

void conv_max(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t places, Tensor& out, Tensor& index) {
  WEFT_ASSERT(x.is_contiguous() && out.is_contiguous() && index.is_contiguous());
  if (out.numel() == 0) return;
  const Sizes s(x.sizes(), weight.sizes());
  const Tensor columns = by_column(weight);
  dispatch_floating("conv1d_max", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const TensorOptions made(dtype_of<C>::value, x.device());
    Tensor best = std::is_same_v<T, C> ? out : empty(out.sizes(), made);
    // Whole samples where some fit, else parts of one.
    const int64_t row_bytes = s.outputs * static_cast<int64_t>(sizeof(C));
    const int64_t rows = std::max<int64_t>(1, kMostTileBytes / row_bytes);
    const int64_t group = std::min(s.samples, std::max<int64_t>(1, rows / s.length)), part = std::min(places, rows);
    Tensor tile = empty({(group - 1) * s.length + part, s.outputs}, made);
    for (int64_t n = 0; n < s.samples; n += group)
      for (int64_t first = 0; first < places; first += part) {
        const int64_t samples = std::min(group, s.samples - n), count = std::min(part, places - first);
        fill_tile(s, x.data<T>(), columns.data<T>(), (samples - 1) * s.length + count, n * s.length + first, tile);
        const dim3 block = block_of_columns(count, samples * s.outputs);
        launch(static_cast<unsigned>(ceil_div(samples * s.outputs, block.x)), block, 0, max_kernel<T>,
               samples * s.outputs, s.outputs, s.length, first, count, first == 0, tile.data<C>(),
               bias.defined() ? bias.data<T>() : nullptr, best.data<C>() + n * s.outputs,
               index.data<int32_t>() + n * s.outputs);
      }
    if (!std::is_same_v<T, C>) copy(best, out);
  });
}

void conv_max_grad(const Tensor& dy_any, const Tensor& x, const Tensor& weight, const Tensor& index, Tensor& dx,
                   Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(index.is_contiguous() && (!dx.defined() || dx.is_contiguous()));
  const Tensor dy = raw::contiguous(dy_any);
  const int32_t* const where = index.data<int32_t>();
  dispatch_floating("conv1d_max", dy.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const T* const g = dy.data<T>();
    if (dx.defined() && dx.numel() > 0) {
      const Sizes s(dx.sizes(), weight.sizes());
      const Tensor columns = by_column(weight);
      const T* const w = columns.data<T>();
      T* const to = dx.data<T>();
      const auto run = [&]<int V>() {
        launch(blocks_for(s.samples * s.length * kWarp), kBlock, 0, grad_data_kernel<V, T>, s, g, w, where, to);
      };
      with_packs<T>(s.channels, run, w, to);
    }
    if (dweight.defined()) {
      const Sizes s(x.sizes(), dweight.sizes());
      Tensor by_place = empty({s.outputs, s.kernel, s.channels}, {dtype_of<C>::value, x.device()});
      const T* const from = x.data<T>();
      C* const to = by_place.data<C>();
      const auto run = [&]<int V>() {
        launch(blocks_for(s.outputs * s.depth() / V), kBlock, 0, grad_weight_kernel<V, T>, s, g, from, where, to);
      };
      with_packs<T>(s.channels, run, from, to);
      copy(raw::transpose(by_place, 1, 2), dweight);
    }
    if (dbias.defined()) {
      const int64_t samples = dy.sizes()[0], outputs = dy.sizes()[1];
      const dim3 block = block_of_columns(samples, outputs);
      launch(static_cast<unsigned>(ceil_div(outputs, block.x)), block, 0, grad_bias_kernel<T>, samples, outputs, g,
             where, dbias.data<T>());
    }
  });
}

}  // namespace weft::WEFT_GPU
