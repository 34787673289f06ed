// Normalising rows of contiguous memory, by a warp where rows are short, else by a block.
#pragma once

#include "tensor/cuda/channels.cuh"

namespace weft::WEFT_GPU {

/// Rows of more packs than this are a block's.
inline constexpr int64_t kWarpPacks = kUnroll * kWarp;

/// The threads that share a row.
template <bool Block>
struct Team {
  static constexpr int kSize = Block ? kBlock : kWarp;
  int64_t row;
  int lane;

  __device__ Team()
      : row(Block ? blockIdx.x : static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp),
        lane(static_cast<int>(threadIdx.x) % kSize) {}

  static unsigned blocks(int64_t rows) { return static_cast<unsigned>(Block ? rows : ceil_div(rows, kWarps)); }

  /// The join over all threads, in all of them in the same bits. Once in a kernel.
  template <class S>
  __device__ S join(S mine) const {
    if constexpr (Block) {
      S one[1] = {mine};
      return block_join<1>(one, 1);
    } else {
      WEFT_UNROLL
      for (int offset = kWarp / 2; offset > 0; offset /= 2) mine.join(mine.from_lane(offset));
      return mine.from_first();
    }
  }

  /// f<U>(i) for U packs at a time of a row of n elements, from i on and V · kSize apart.
  template <int V, class F>
  __device__ __forceinline__ void each(int64_t n, const F& f) const {
    constexpr int64_t step = V * kSize;
    int64_t i = lane * V;
    for (; i + (kUnroll - 1) * step < n; i += kUnroll * step) f.template operator()<kUnroll>(i);
    for (; i < n; i += step) f.template operator()<1>(i);
  }
};

/// f<V, Block>(): whether items are wide, and rows a block's.
template <class T, class F>
void with_team(bool wide, int64_t n, const F& f) {
  constexpr int V = kWide<T>;
  const bool block = n / (wide ? V : 1) > kWarpPacks;
  if (wide)
    block ? f.template operator()<V, true>() : f.template operator()<V, false>();
  else
    block ? f.template operator()<1, true>() : f.template operator()<1, false>();
}

template <class C, int V>
__device__ __forceinline__ Pack<C, V> filled(C value) {
  Pack<C, V> pack;
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) pack.v[k] = value;
  return pack;
}

/// Weights by place in the row; null is 1, and 0 for the bias.
template <class C>
struct ByColumn {
  const C *weights, *biases;

  template <int V>
  __device__ Pack<C, V> weight(int64_t, int64_t i) const {
    return weights ? load_pack<V>(weights + i) : filled<C, V>(1);
  }
  template <int V>
  __device__ Pack<C, V> bias(int64_t, int64_t i) const {
    return biases ? load_pack<V>(biases + i) : filled<C, V>(0);
  }
};

/// Weights by channel, where a row is `channels` planes of one of `groups` groups; V divides a plane.
template <class C>
struct ByChannel {
  const C *weights, *biases;
  int64_t groups, channels;
  Quotient plane_of;

  __device__ int64_t channel(int64_t row, int64_t i) const { return row % groups * channels + plane_of(i); }
  template <int V>
  __device__ Pack<C, V> weight(int64_t row, int64_t i) const {
    return filled<C, V>(weights ? weights[channel(row, i)] : C(1));
  }
  template <int V>
  __device__ Pack<C, V> bias(int64_t row, int64_t i) const {
    return filled<C, V>(biases ? biases[channel(row, i)] : C(0));
  }
};

/// Rows [rows, n] to mean 0 and variance 1, then times weight plus bias. One reading for the statistics, one, from the
/// caches, for the result. Without `mean` around 0.
template <class T, int V, bool Block, class Affine>
__global__ void __launch_bounds__(kBlock, kResident)
    normalise_rows_kernel(int64_t rows, int64_t n, const T* x, Affine affine, double eps, T* y, compute_t<T>* mean,
                          compute_t<T>* rstd) {
  using C = compute_t<T>;
  const Team<Block> team;
  if (team.row >= rows) return;
  const T* const from = x + team.row * n;
  T* const to = y + team.row * n;
  Moments<C> moments[1] = {};
  team.template each<V>(n, [&]<int U>(int64_t i) {
    C values[1][U * V];
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      const auto pack = load_pack<V>(from + i + u * V * Team<Block>::kSize);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) values[0][u * V + k] = static_cast<C>(pack.v[k]);
    }
    join_values(moments, moments[0].count, values);
  });
  const Moments<C> all = team.join(moments[0]);
  const C centre = mean ? all.mean : C(0);
  const C variance = all.squares / static_cast<C>(n) + (mean ? C(0) : all.mean * all.mean);
  const C scale = C(1) / std::sqrt(variance + static_cast<C>(eps));
  if (team.lane == 0) {
    if (mean) mean[team.row] = centre;
    rstd[team.row] = scale;
  }
  team.template each<V>(n, [&]<int U>(int64_t i) {
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      const int64_t at = i + u * V * Team<Block>::kSize;
      auto pack = load_pack<V>(from + at);
      const auto w = affine.template weight<V>(team.row, at), b = affine.template bias<V>(team.row, at);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k)
        pack.v[k] = static_cast<T>((static_cast<C>(pack.v[k]) - centre) * scale * w.v[k] + b.v[k]);
      store_pack(to + at, pack);
    }
  });
}

/// Normalised values of a row.
template <class C>
struct FromRow {
  const C *mean, *rstd;  // mean may be null
  __device__ C operator()(C x, int64_t row, int64_t) const { return (x - (mean ? mean[row] : C(0))) * rstd[row]; }
};

}  // namespace weft::WEFT_GPU
