// Group norm: rows of whole planes. Sums over planes serve the gradients of the input and of the weights.
#include "tensor/cuda/rows.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// Sizes of [N, C, …] in groups.
struct Groups {
  int64_t samples, groups, channels, plane, rows, n;  // channels of a group; rows of n elements

  Groups(const Tensor& x, const Tensor& mean)
      : samples(x.sizes()[0]), groups(mean.sizes()[1]), channels(x.sizes()[1] / groups), rows(mean.numel()) {
    plane = 1;
    for (int64_t d = 2; d < x.dim(); ++d) plane *= x.sizes()[d];
    n = channels * plane;
  }
  template <class C>
  ByChannel<C> affine(const Tensor& weight, const Tensor& bias) const {
    return {data_or_null<C>(weight), data_or_null<C>(bias), groups, channels, Quotient(plane, n)};
  }
};

/// partial [N, 2, C]: Σ dy and Σ dy · normalised x of each plane.
template <class T, int V, bool Block>
__global__ void __launch_bounds__(kBlock, kResident)
    plane_sums_kernel(Groups g, const T* dy, const T* x, FromRow<compute_t<T>> normalised, compute_t<T>* partial) {
  using C = compute_t<T>;
  const Team<Block> team;
  const int64_t all = g.groups * g.channels;
  if (team.row >= g.samples * all) return;
  const T *const upstream = dy + team.row * g.plane, *const values = x + team.row * g.plane;
  const int64_t row = team.row / g.channels;
  Sums<C> sums = {};
  team.template each<V>(g.plane, [&]<int U>(int64_t i) {
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      const auto d = load_pack<V>(upstream + i + u * V * Team<Block>::kSize);
      const auto v = load_pack<V>(values + i + u * V * Team<Block>::kSize);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) {
        sums.first += static_cast<C>(d.v[k]);
        sums.second += static_cast<C>(d.v[k]) * normalised(static_cast<C>(v.v[k]), row, 0);
      }
    }
  });
  sums = team.join(sums);
  if (team.lane != 0) return;
  const int64_t sample = team.row / all, channel = team.row - sample * all;
  partial[sample * 2 * all + channel] = sums.first;
  partial[(sample * 2 + 1) * all + channel] = sums.second;
}

template <class T, int V, bool Block>
__global__ void __launch_bounds__(kBlock, kResident)
    group_norm_grad_kernel(Groups g, const T* dy, const T* x, FromRow<compute_t<T>> normalised,
                           ByChannel<compute_t<T>> affine, const compute_t<T>* partial, T* dx) {
  using C = compute_t<T>;
  const Team<Block> team;
  if (team.row >= g.rows) return;
  const int64_t all = g.groups * g.channels, group = team.row % g.groups;
  const C* const planes = partial + team.row / g.groups * 2 * all;
  Sums<C> sums = {};
  for (int64_t c = team.lane; c < g.channels; c += Team<Block>::kSize) {
    const int64_t channel = group * g.channels + c;
    const C w = affine.weights ? affine.weights[channel] : C(1);
    sums.first += w * planes[channel];
    sums.second += w * planes[all + channel];
  }
  sums = team.join(sums);
  const C first = sums.first / static_cast<C>(g.n), second = sums.second / static_cast<C>(g.n);
  const C scale = normalised.rstd[team.row];
  const T *const upstream = dy + team.row * g.n, *const values = x + team.row * g.n;
  team.template each<V>(g.n, [&]<int U>(int64_t i) {
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      const int64_t at = i + u * V * Team<Block>::kSize;
      auto d = load_pack<V>(upstream + at);
      const auto v = load_pack<V>(values + at);
      const auto w = affine.template weight<V>(team.row, at);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k)
        d.v[k] = static_cast<T>(
            (static_cast<C>(d.v[k]) * w.v[k] - first - normalised(static_cast<C>(v.v[k]), team.row, 0) * second) *
            scale);
      store_pack(dx + team.row * g.n + at, d);
    }
  });
}

}  // namespace

void group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y, Tensor& mean,
                Tensor& rstd) {
  WEFT_ASSERT(x.is_contiguous() && y.is_contiguous());
  if (x.numel() == 0) return;
  const Groups g(x, mean);
  dispatch_floating("group_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const bool wide = g.plane % kWide<T> == 0 && is_aligned(x, 16) && is_aligned(y, 16);
    with_team<T>(wide, g.n, [&]<int V, bool Block>() {
      launch(Team<Block>::blocks(g.rows), kBlock, 0, normalise_rows_kernel<T, V, Block, ByChannel<C>>, g.rows, g.n,
             x.data<T>(), g.affine<C>(weight, bias), eps, y.data<T>(), mean.data<C>(), rstd.data<C>());
    });
  });
}

void group_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                     Tensor& dx, Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(x.is_contiguous());
  const Tensor dense = raw::contiguous(dy);
  const Groups g(x, mean);
  const int64_t all = g.groups * g.channels;
  dispatch_floating("group_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const bool wide = g.plane % kWide<T> == 0 && is_aligned(dense, 16) && is_aligned(x, 16) && is_aligned(dx, 16);
    const Tensor partial = empty({g.samples, 2, all}, {dtype_of<C>::value, x.device()});
    const FromRow<C> normalised{mean.data<C>(), rstd.data<C>()};
    if (g.samples * all > 0) {
      with_team<T>(wide, g.plane, [&]<int V, bool Block>() {
        launch(Team<Block>::blocks(g.samples * all), kBlock, 0, plane_sums_kernel<T, V, Block>, g, dense.data<T>(),
               x.data<T>(), normalised, partial.data<C>());
      });
    }
    if (dx.defined() && x.numel() > 0) {
      with_team<T>(wide, g.n, [&]<int V, bool Block>() {
        launch(Team<Block>::blocks(g.rows), kBlock, 0, group_norm_grad_kernel<T, V, Block>, g, dense.data<T>(),
               x.data<T>(), normalised, g.affine<C>(weight, {}), partial.data<C>(), dx.data<T>());
      });
    }
    if (dweight.defined() || dbias.defined())
      join_parts(partial.data<C>(), g.samples, all, WriteSums<C>{data_or_null<C>(dweight), data_or_null<C>(dbias)});
  });
}

}  // namespace weft::WEFT_GPU
