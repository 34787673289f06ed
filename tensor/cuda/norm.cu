// Batch norm, on channels-last memory and on planes. Statistics and sums are made in parts by float arithmetic that
// loses nothing to a large mean, and joined in double.
#include "tensor/cuda/channels.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// Of a dense tensor [N, C, …].
Channels channels_of(const Tensor& x) {
  const int64_t n = x.sizes()[0], c = x.sizes()[1];
  int64_t s = 1;
  for (int64_t d = 2; d < x.dim(); ++d) s *= x.sizes()[d];
  const bool last = s == 1 || (x.is_channels_last() && c > 1);
  WEFT_ASSERT(last || x.is_contiguous());
  return {last, c, s, n * s};
}

/// x itself, or a copy, in y's layout.
Tensor in_layout_of(const Tensor& y, const Tensor& x) {
  return y.is_contiguous() ? raw::contiguous(x) : raw::channels_last(x);
}

template <class T, int V, bool Last>
__global__ void __launch_bounds__(kBlock, kResident) statistics_kernel(Tiles t, const T* x, compute_t<T>* partial) {
  using C = compute_t<T>;
  constexpr int A = Walk<V, Last>::kChannels;
  const Walk<V, Last> walk(t);
  Moments<C> moments[A] = {};
  C count = 0;
  walk.each([&]<int U>(int64_t item) {
    constexpr int kValues = Last ? U : U * V;  // of each channel
    C values[Walk<V, Last>::kChannels][kValues];
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      const auto pack = load_pack<V>(x + walk.offset(item + u * walk.step));
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) values[Last ? k : 0][Last ? u : u * V + k] = static_cast<C>(pack.v[k]);
    }
    join_values(moments, count, values);
  });
  WEFT_UNROLL
  for (int a = 0; a < A; ++a) moments[a].count = count;
  const Moments<C> all = block_join<Walk<V, Last>::kMostLanes>(moments, t.lanes);
  store_part<V, Last>(t, all.mean, all.squares, partial);
}

/// Where statistics go, and how running ones move.
template <class C>
struct Statistics {
  C *mean, *rstd, *running_mean, *running_var;
  double eps, momentum;

  __device__ void moved(C* running, int64_t channel, double value) const {
    if (running)
      running[channel] = static_cast<C>((1 - momentum) * static_cast<double>(running[channel]) + momentum * value);
  }
};

template <class C>
__global__ void __launch_bounds__(kJoinWarps* kWarp)
    join_statistics_kernel(Tiles t, const C* partial, Statistics<C> to) {
  __shared__ double sums[kJoinWarps][kWarp], deviations[kJoinWarps][kWarp];
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x % kWarp;
  const C* const from = partial + (channel < t.c ? channel : t.c - 1);
  const double count = static_cast<double>(t.count * t.item_values);
  const double mean =
      sum_of_parts(
          t.parts, sums,
          [&](int64_t p) { return static_cast<double>(t.values_in(p)) * static_cast<double>(from[p * 2 * t.c]); }) /
      count;
  const double squares = sum_of_parts(t.parts, deviations, [&](int64_t p) {
    const double apart = static_cast<double>(from[p * 2 * t.c]) - mean;
    return static_cast<double>(from[(p * 2 + 1) * t.c]) + static_cast<double>(t.values_in(p)) * apart * apart;
  });
  if (threadIdx.x >= kWarp || channel >= t.c) return;
  to.mean[channel] = static_cast<C>(mean);
  to.rstd[channel] = static_cast<C>(1 / std::sqrt(squares / count + to.eps));
  to.moved(to.running_mean, channel, mean);
  to.moved(to.running_var, channel, squares / (count - 1));  // the unbiased estimate
}

/// y = (x - mean) · rstd · weight + bias.
template <class T, int V, bool Last>
__global__ void __launch_bounds__(kBlock, kResident)
    normalise_kernel(Tiles t, const T* x, const compute_t<T>* mean, const compute_t<T>* rstd,
                     const compute_t<T>* weight, const compute_t<T>* bias, T* y) {
  using C = compute_t<T>;
  constexpr int A = Walk<V, Last>::kChannels;
  const Walk<V, Last> walk(t);
  if (walk.first >= walk.end) return;
  C centre[A], scale[A], shift[A];
  WEFT_UNROLL
  for (int a = 0; a < A; ++a) {
    const int64_t channel = walk.channel + a;
    centre[a] = mean[channel];
    scale[a] = weight ? weight[channel] * rstd[channel] : rstd[channel];
    shift[a] = bias ? bias[channel] : C(0);
  }
  walk.each([&]<int U>(int64_t item) {
    Pack<T, V> values[U];
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) values[u] = load_pack<V>(x + walk.offset(item + u * walk.step));
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) {
        const int a = Last ? k : 0;
        values[u].v[k] = static_cast<T>((static_cast<C>(values[u].v[k]) - centre[a]) * scale[a] + shift[a]);
      }
      store_pack(y + walk.offset(item + u * walk.step), values[u]);
    }
  });
}

template <class C>
struct FromMean {
  const C* mean;
  __device__ C operator()(C x, int64_t, int64_t channel) const { return x - mean[channel]; }
};

/// Writes the gradients of weight and bias, and what the input's gradient takes of the sums.
template <class C>
struct FinishGradient {
  WriteSums<C> write;
  const C* rstd;
  C *first, *second;  // of each channel; null where the statistics are no function of the input
  double count;

  __device__ void operator()(int64_t channel, double sum, double product) const {
    const double r = static_cast<double>(rstd[channel]);
    write(channel, sum, product * r);
    if (!first) return;
    first[channel] = static_cast<C>(sum / count);
    second[channel] = static_cast<C>(product / count * r * r);
  }
};

/// dx = (dy - first - (x - mean) · second) · rstd · weight, or without the statistics' part dy · rstd · weight.
template <class T, int V, bool Last, bool Training>
__global__ void __launch_bounds__(kBlock, kResident)
    input_gradient_kernel(Tiles t, const T* dy, const T* x, const compute_t<T>* mean, const compute_t<T>* rstd,
                          const compute_t<T>* weight, const compute_t<T>* first, const compute_t<T>* second, T* dx) {
  using C = compute_t<T>;
  constexpr int A = Walk<V, Last>::kChannels;
  const Walk<V, Last> walk(t);
  if (walk.first >= walk.end) return;
  C centre[A], scale[A], constant[A], slope[A];
  WEFT_UNROLL
  for (int a = 0; a < A; ++a) {
    const int64_t channel = walk.channel + a;
    scale[a] = weight ? weight[channel] * rstd[channel] : rstd[channel];
    if constexpr (Training) {
      centre[a] = mean[channel];
      constant[a] = first[channel];
      slope[a] = second[channel];
    }
  }
  walk.each([&]<int U>(int64_t item) {
    Pack<T, V> g[U];
    [[maybe_unused]] Pack<T, V> v[U];
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      g[u] = load_pack<V>(dy + walk.offset(item + u * walk.step));
      if constexpr (Training) v[u] = load_pack<V>(x + walk.offset(item + u * walk.step));
    }
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) {
        const int a = Last ? k : 0;
        C d = static_cast<C>(g[u].v[k]);
        if constexpr (Training) d -= constant[a] + (static_cast<C>(v[u].v[k]) - centre[a]) * slope[a];
        g[u].v[k] = static_cast<T>(d * scale[a]);
      }
      store_pack(dx + walk.offset(item + u * walk.step), g[u]);
    }
  });
}

}  // namespace

void batch_norm_statistics(const Tensor& x, double eps, double momentum, Tensor& mean, Tensor& rstd,
                           Tensor& running_mean, Tensor& running_var) {
  const Tensor dense = x.is_channels_last() ? x : raw::contiguous(x);
  const Channels at = channels_of(dense);
  if (at.c == 0) return;
  dispatch_floating("batch_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    with_tiles<T>(at, kSumBlocks, is_aligned(dense, 16), [&]<int V, bool Last>(const Tiles& t) {
      const Tensor partial = empty({t.parts, 2, at.c}, {dtype_of<C>::value, x.device()});
      launch(t.grid, kBlock, 0, statistics_kernel<T, V, Last>, t, dense.data<T>(), partial.data<C>());
      const Statistics<C> to{
          mean.data<C>(), rstd.data<C>(), data_or_null<C>(running_mean), data_or_null<C>(running_var), eps, momentum};
      launch(static_cast<unsigned>(ceil_div(at.c, kWarp)), kJoinWarps * kWarp, 0, join_statistics_kernel<C>, t,
             partial.data<C>(), to);
    });
  });
}

void batch_norm(const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight, const Tensor& bias,
                Tensor& y) {
  if (x.numel() == 0) return;
  const Channels at = channels_of(y);
  const Tensor dense = in_layout_of(y, x);
  dispatch_floating("batch_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    with_tiles<T>(at, kMapBlocks, is_aligned(dense, 16) && is_aligned(y, 16), [&]<int V, bool Last>(const Tiles& t) {
      launch(t.grid, kBlock, 0, normalise_kernel<T, V, Last>, t, dense.data<T>(), mean.data<C>(), rstd.data<C>(),
             data_or_null<C>(weight), data_or_null<C>(bias), y.data<T>());
    });
  });
}

void batch_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                     bool training, Tensor& dx, Tensor& dweight, Tensor& dbias) {
  const Channels at = channels_of(x);
  if (at.c == 0) return;
  const Tensor dense = in_layout_of(x, dy);
  const bool through_statistics = training && dx.defined();
  const bool aligned = is_aligned(dense, 16) && is_aligned(x, 16) && is_aligned(dx, 16);
  dispatch_floating("batch_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const Tensor parts_of_dx = empty({2, through_statistics ? at.c : 0}, {dtype_of<C>::value, x.device()});
    C* const first = through_statistics ? parts_of_dx.data<C>() : nullptr;
    C* const second = first ? first + at.c : nullptr;
    if (through_statistics || dweight.defined() || dbias.defined()) {
      with_tiles<T>(at, kSumBlocks, aligned, [&]<int V, bool Last>(const Tiles& t) {
        const Tensor partial = empty({t.parts, 2, at.c}, {dtype_of<C>::value, x.device()});
        launch(t.grid, kBlock, 0, gradient_sums_kernel<T, V, Last, FromMean<C>>, t, FromMean<C>{mean.data<C>()},
               dense.data<T>(), x.data<T>(), partial.data<C>());
        join_parts(partial.data<C>(), t.parts, at.c,
                   FinishGradient<C>{{data_or_null<C>(dweight), data_or_null<C>(dbias)},
                                     rstd.data<C>(),
                                     first,
                                     second,
                                     static_cast<double>(at.rows)});
      });
    }
    if (!dx.defined() || x.numel() == 0) return;
    with_tiles<T>(at, kMapBlocks, aligned, [&]<int V, bool Last>(const Tiles& t) {
      launch(t.grid, kBlock, 0,
             training ? input_gradient_kernel<T, V, Last, true> : input_gradient_kernel<T, V, Last, false>, t,
             dense.data<T>(), x.data<T>(), mean.data<C>(), rstd.data<C>(), data_or_null<C>(weight), first, second,
             dx.data<T>());
    });
  });
}

}  // namespace weft::WEFT_GPU
