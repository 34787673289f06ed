// Layer and root-mean-square norm. Rows that fit a warp's registers are read once.
#include "tensor/cuda/block.cuh"
#include "tensor/cuda/rows.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// A row's K packs of one lane.
template <class T, int V, int K>
struct RowPacks {
  Pack<T, V> packs[K];

  __device__ __forceinline__ void load(const T* row, int n, int lane) {
    WEFT_UNROLL
    for (int k = 0; k < K; ++k) {
      const int i = (k * kWarp + lane) * V;
      if (i < n) packs[k] = load_pack<V>(row + i);
    }
  }
};

/// f(pack, i) for the packs that a lane has of a row.
template <int V, int K, class F>
__device__ __forceinline__ void each_pack(int n, int lane, const F& f) {
  WEFT_UNROLL
  for (int k = 0; k < K; ++k) {
    const int i = (k * kWarp + lane) * V;
    if (i < n) f(k, i);
  }
}

template <class T, int V, int K>
__global__ void __launch_bounds__(kBlock, kResident)
    layer_norm_kernel(int64_t rows, int n, const T* x, ByColumn<compute_t<T>> affine, double eps, T* y,
                      compute_t<T>* mean, compute_t<T>* rstd) {
  using C = compute_t<T>;
  const Team<false> team;
  if (team.row >= rows) return;
  RowPacks<T, V, K> values;
  values.load(x + team.row * n, n, team.lane);
  C total = 0;
  each_pack<V, K>(n, team.lane, [&](int p, int) {
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) total += static_cast<C>(values.packs[p].v[k]);
  });
  const C centre = mean ? warp_reduce(total, Sum{}) / static_cast<C>(n) : C(0);
  C squares = 0;
  each_pack<V, K>(n, team.lane, [&](int p, int) {
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) {
      const C apart = static_cast<C>(values.packs[p].v[k]) - centre;
      squares += apart * apart;
    }
  });
  const C scale = C(1) / std::sqrt(warp_reduce(squares, Sum{}) / static_cast<C>(n) + static_cast<C>(eps));
  if (team.lane == 0) {
    if (mean) mean[team.row] = centre;
    rstd[team.row] = scale;
  }
  each_pack<V, K>(n, team.lane, [&](int p, int i) {
    const auto w = affine.template weight<V>(team.row, i), b = affine.template bias<V>(team.row, i);
    Pack<T, V> to;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k)
      to.v[k] = static_cast<T>((static_cast<C>(values.packs[p].v[k]) - centre) * scale * w.v[k] + b.v[k]);
    store_pack(y + team.row * n + i, to);
  });
}

/// What is the same for a row in its gradient.
template <class C>
struct RowGradient {
  C centre, scale, first = 0, second = 0;

  __device__ RowGradient(const C* mean, const C* rstd, int64_t row)
      : centre(mean ? mean[row] : C(0)), scale(rstd[row]) {}
  __device__ C normalised(C x) const { return (x - centre) * scale; }
  /// Takes the sums of dy · weight, and of that times the normalised values.
  __device__ void set(const Sums<C>& sums, const C* mean, int64_t n) {
    first = mean ? sums.first / static_cast<C>(n) : C(0);
    second = sums.second / static_cast<C>(n);
  }
  __device__ C operator()(C weighted, C x) const { return (weighted - first - normalised(x) * second) * scale; }
};

template <class T, int V, int K>
__global__ void __launch_bounds__(kBlock, kResident)
    layer_norm_grad_kernel(int64_t rows, int n, const T* dy, const T* x, const compute_t<T>* mean,
                           const compute_t<T>* rstd, ByColumn<compute_t<T>> affine, T* dx) {
  using C = compute_t<T>;
  const Team<false> team;
  if (team.row >= rows) return;
  RowGradient<C> gradient(mean, rstd, team.row);
  RowPacks<T, V, K> values, upstream;
  values.load(x + team.row * n, n, team.lane);
  upstream.load(dy + team.row * n, n, team.lane);
  Sums<C> sums = {};
  each_pack<V, K>(n, team.lane, [&](int p, int i) {
    const auto w = affine.template weight<V>(team.row, i);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) {
      const C weighted = static_cast<C>(upstream.packs[p].v[k]) * w.v[k];
      sums.first += weighted;
      sums.second += weighted * gradient.normalised(static_cast<C>(values.packs[p].v[k]));
    }
  });
  gradient.set(team.join(sums), mean, n);
  each_pack<V, K>(n, team.lane, [&](int p, int i) {
    const auto w = affine.template weight<V>(team.row, i);
    Pack<T, V> to;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k)
      to.v[k] = static_cast<T>(
          gradient(static_cast<C>(upstream.packs[p].v[k]) * w.v[k], static_cast<C>(values.packs[p].v[k])));
    store_pack(dx + team.row * n + i, to);
  });
}

/// The same by a block, for rows of any length.
template <class T, int V>
__global__ void __launch_bounds__(kBlock, kResident)
    long_layer_norm_grad_kernel(int64_t n, const T* dy, const T* x, const compute_t<T>* mean, const compute_t<T>* rstd,
                                ByColumn<compute_t<T>> affine, T* dx) {
  using C = compute_t<T>;
  const Team<true> team;
  RowGradient<C> gradient(mean, rstd, team.row);
  const T *const values = x + team.row * n, *const upstream = dy + team.row * n;
  Sums<C> sums = {};
  team.template each<V>(n, [&]<int U>(int64_t i) {
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      const int64_t at = i + u * V * kBlock;
      const auto v = load_pack<V>(values + at), g = load_pack<V>(upstream + at);
      const auto w = affine.template weight<V>(team.row, at);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) {
        const C weighted = static_cast<C>(g.v[k]) * w.v[k];
        sums.first += weighted;
        sums.second += weighted * gradient.normalised(static_cast<C>(v.v[k]));
      }
    }
  });
  gradient.set(team.join(sums), mean, n);
  team.template each<V>(n, [&]<int U>(int64_t i) {
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      const int64_t at = i + u * V * kBlock;
      const auto v = load_pack<V>(values + at);
      auto g = load_pack<V>(upstream + at);
      const auto w = affine.template weight<V>(team.row, at);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k)
        g.v[k] = static_cast<T>(gradient(static_cast<C>(g.v[k]) * w.v[k], static_cast<C>(v.v[k])));
      store_pack(dx + team.row * n + at, g);
    }
  });
}

/// Packs of a row that a lane can hold: not more elements of 16 bits than of 32.
template <class T>
inline constexpr int kMostPacks = sizeof(T) < 4 ? 4 : 8;

/// short_rows<V, K>() where a row is at most K packs a lane, else long_rows<V>().
template <class T, class Short, class Long>
void with_rows(bool wide, int64_t n, const Short& short_rows, const Long& long_rows) {
  const auto choose = [&]<int V>() {
    if (n <= 2 * kWarp * V)
      short_rows.template operator()<V, 2>();
    else if (n <= kMostPacks<T> * kWarp * V)
      short_rows.template operator()<V, kMostPacks<T>>();
    else
      long_rows.template operator()<V>();
  };
  wide ? choose.template operator()<kWide<T>>() : choose.template operator()<1>();
}

template <class T>
bool fits_packs(int64_t n, const Tensor& weight, const Tensor& bias) {
  constexpr int64_t bytes = kWide<T> * sizeof(compute_t<T>);
  return n % kWide<T> == 0 && is_aligned(weight, bytes) && is_aligned(bias, bytes);
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y, Tensor& mean,
                Tensor& rstd) {
  WEFT_ASSERT(x.is_contiguous() && y.is_contiguous());
  if (x.numel() == 0) return;
  const int64_t rows = rstd.numel(), n = x.numel() / rows;
  dispatch_floating("layer_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const bool wide = fits_packs<T>(n, weight, bias) && is_aligned(x, 16) && is_aligned(y, 16);
    const ByColumn<C> affine{data_or_null<C>(weight), data_or_null<C>(bias)};
    const T* const from = x.data<T>();
    T* const to = y.data<T>();
    C *const means = data_or_null<C>(mean), *const rstds = rstd.data<C>();
    with_rows<T>(
        wide, n,
        [&]<int V, int K>() {
          launch(Team<false>::blocks(rows), kBlock, 0, layer_norm_kernel<T, V, K>, rows, static_cast<int>(n), from,
                 affine, eps, to, means, rstds);
        },
        [&]<int V>() {
          launch(Team<true>::blocks(rows), kBlock, 0, normalise_rows_kernel<T, V, true, ByColumn<C>>, rows, n, from,
                 affine, eps, to, means, rstds);
        });
  });
}

void layer_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                     Tensor& dx, Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(x.is_contiguous());
  const Tensor dense = raw::contiguous(dy);
  const Tensor& sums = dweight.defined() ? dweight : dbias;
  const int64_t rows = rstd.numel(), n = rows > 0 ? x.numel() / rows : sums.defined() ? sums.numel() : 0;
  if (n == 0) return;
  const bool aligned = is_aligned(dense, 16) && is_aligned(x, 16) && is_aligned(dx, 16);
  dispatch_floating("layer_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const T *const values = x.data<T>(), *const upstream = dense.data<T>();
    const C *const means = data_or_null<C>(mean), *const rstds = rstd.data<C>();
    if (dx.defined() && rows > 0) {
      const ByColumn<C> affine{data_or_null<C>(weight), nullptr};
      T* const to = dx.data<T>();
      with_rows<T>(
          aligned && fits_packs<T>(n, weight, {}), n,
          [&]<int V, int K>() {
            launch(Team<false>::blocks(rows), kBlock, 0, layer_norm_grad_kernel<T, V, K>, rows, static_cast<int>(n),
                   upstream, values, means, rstds, affine, to);
          },
          [&]<int V>() {
            launch(Team<true>::blocks(rows), kBlock, 0, long_layer_norm_grad_kernel<T, V>, n, upstream, values, means,
                   rstds, affine, to);
          });
    }
    if (!sums.defined()) return;
    with_tiles_of<T, true>({true, n, 1, rows}, kSumBlocks, aligned, [&]<int V, bool Last>(const Tiles& t) {
      const Tensor partial = empty({t.parts, 2, n}, {dtype_of<C>::value, x.device()});
      launch(t.grid, kBlock, 0, gradient_sums_kernel<T, V, Last, FromRow<C>>, t, FromRow<C>{means, rstds}, upstream,
             values, partial.data<C>());
      join_parts(partial.data<C>(), t.parts, n, WriteSums<C>{data_or_null<C>(dweight), data_or_null<C>(dbias)});
    });
  });
}

}  // namespace weft::WEFT_GPU
