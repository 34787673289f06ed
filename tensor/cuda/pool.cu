// Pooling over channels-last images: a thread has one place of some channels. Gradients are gathered: each input place
// asks the windows that cover it. Large windows are shared by a block, whose threads read 32 channels side by side.
#include "tensor/cuda/channels.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// Windows of more places than this are a block's.
constexpr int64_t kThreadPlaces = 64;
/// Threads that a launch may count with 32 bits.
constexpr int64_t kMostItems = int64_t{1} << 30;

struct Span {
  int begin, end;
  __device__ int size() const { return end - begin; }
};

/// One dimension of the images and the windows.
struct Axis {
  int size, outputs;  // places of the input and of the output
  int kernel, stride, padding;
  bool count_padding;

  /// Input places of output o.
  __device__ Span places(int o) const {
    const int start = o * stride - padding, stop = start + kernel;
    return {start > 0 ? start : 0, stop < size ? stop : size};
  }
  /// Outputs whose windows cover input place i.
  __device__ Span outputs_over(int i) const {
    const int at = i + padding, last = at / stride + 1;
    const int begin = at < kernel ? 0 : (at - kernel) / stride + 1, end = last < outputs ? last : outputs;
    return {begin, end > begin ? end : begin};
  }
  /// What an average divides by along this dimension.
  __device__ int divisor(int o) const {
    if (!count_padding) return places(o).size();
    const int start = o * stride - padding, stop = start + kernel;
    return (stop < size + padding ? stop : size + padding) - start;
  }
};

struct Windows {
  Axis h, w;
  int64_t n, c;

  Windows(const Tensor& image, const Tensor& out, const PoolWindow& p)
      : h(axis(image.sizes()[2], out.sizes()[2], p.kernel.h, p.stride.h, p.padding.h, p.count_padding)),
        w(axis(image.sizes()[3], out.sizes()[3], p.kernel.w, p.stride.w, p.padding.w, p.count_padding)),
        n(image.sizes()[0]),
        c(image.sizes()[1]) {
    WEFT_ASSERT(image.is_channels_last() && out.is_channels_last());
    WEFT_ASSERT(image.sizes()[2] * image.sizes()[3] < int64_t{1} << 31);
  }
  bool large() const { return int64_t{h.kernel} * w.kernel > kThreadPlaces; }

  /// The first element of one place of the input, and of the output.
  __device__ int64_t input(int64_t image, int at_h, int at_w) const {
    return ((image * h.size + at_h) * w.size + at_w) * c;
  }
  __device__ int64_t output(int64_t image, int at_h, int at_w) const {
    return ((image * h.outputs + at_h) * w.outputs + at_w) * c;
  }
  template <class C>
  __device__ C divisor(int at_h, int at_w) const {
    return static_cast<C>(static_cast<int64_t>(h.divisor(at_h)) * w.divisor(at_w));
  }

 private:
  static Axis axis(int64_t size, int64_t outputs, int64_t kernel, int64_t stride, int64_t padding, bool count_padding) {
    const int64_t most = size + 2 * padding;  // a longer step does the same as one of this length
    WEFT_ASSERT(most < int64_t{1} << 31);
    return {static_cast<int>(size),    static_cast<int>(outputs),
            static_cast<int>(kernel),  static_cast<int>(stride < most ? stride : most),
            static_cast<int>(padding), count_padding};
  }
};

/// Rows of `width` places of `packs` items each, of images of `height` rows, from row `first` on.
struct RowPlaces {
  Divider packs, width, height;
  int64_t image;
  uint32_t row, count;

  struct At {
    int64_t image;
    int h, w;
    int64_t pack;
  };
  __device__ At operator()(uint32_t i) const {
    const uint32_t place = packs(i), r = width(place), from_image = r + row, images = height(from_image);
    return {image + images, static_cast<int>(from_image - images * height.divisor),
            static_cast<int>(place - r * width.divisor), i - int64_t{place} * packs.divisor};
  }
};

/// Runs part(places) for pieces of [n, height, width, packs] that 32-bit numbers reach.
template <class Part>
void in_rows(int64_t n, int64_t height, int64_t width, int64_t packs, const Part& part) {
  const int64_t items = width * packs, rows = n * height;
  if (items == 0) return;
  WEFT_ASSERT(items < int64_t{1} << 31);
  const int64_t at_once = items < kMostItems ? kMostItems / items : 1;
  for (int64_t row = 0; row < rows; row += at_once) {
    const int64_t count = rows - row < at_once ? rows - row : at_once;
    part(RowPlaces{Divider(packs), Divider(width), Divider(height), row / height, static_cast<uint32_t>(row % height),
                   static_cast<uint32_t>(count * items)});
  }
}

__device__ uint32_t item_of_thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

/// A later value wins where it is larger or the first NaN.
template <class C>
__device__ bool beats(C value, C best) {
  return !(value <= best) && best == best;
}

template <class T, int V>
__global__ void __launch_bounds__(kBlock, 3)
    max_pool_kernel(Windows s, RowPlaces places, const T* x, T* y, int32_t* index) {
  using C = compute_t<T>;
  const uint32_t item = item_of_thread();
  if (item >= places.count) return;
  const auto at = places(item);
  const Span rows = s.h.places(at.h), columns = s.w.places(at.w);
  const T* const from = x + at.pack * V;
  Pack<T, V> best = load_pack<V>(from + s.input(at.image, rows.begin, columns.begin));
  Pack<int32_t, V> winner;
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) winner.v[k] = rows.begin * s.w.size + columns.begin;
  for (int h = rows.begin; h < rows.end; ++h) {
    for (int w = columns.begin; w < columns.end; ++w) {
      const auto values = load_pack<V>(from + s.input(at.image, h, w));
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) {
        if (!beats(static_cast<C>(values.v[k]), static_cast<C>(best.v[k]))) continue;
        best.v[k] = values.v[k];
        winner.v[k] = h * s.w.size + w;
      }
    }
  }
  const int64_t to = s.output(at.image, at.h, at.w) + at.pack * V;
  store_pack(y + to, best);
  if (index) store_pack(index + to, winner);
}

template <class T, int V>
__global__ void __launch_bounds__(kBlock, 3) avg_pool_kernel(Windows s, RowPlaces places, const T* x, T* y) {
  using C = compute_t<T>;
  const uint32_t item = item_of_thread();
  if (item >= places.count) return;
  const auto at = places(item);
  const Span rows = s.h.places(at.h), columns = s.w.places(at.w);
  C sum[V] = {};
  for (int h = rows.begin; h < rows.end; ++h) {
    for (int w = columns.begin; w < columns.end; ++w) {
      const auto values = load_pack<V>(x + s.input(at.image, h, w) + at.pack * V);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) sum[k] += static_cast<C>(values.v[k]);
    }
  }
  const C divisor = s.divisor<C>(at.h, at.w);
  Pack<T, V> to;
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) to.v[k] = static_cast<T>(sum[k] / divisor);
  store_pack(y + s.output(at.image, at.h, at.w) + at.pack * V, to);
}

/// Where a thread of a block stands that has one window of 32 channels: a channel, and each eighth place.
struct SharedWindow {
  Span rows, columns;
  int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  int64_t channel;

  __device__ SharedWindow(const Windows& s, const RowPlaces::At& at)
      : rows(s.h.places(at.h)), columns(s.w.places(at.w)), channel(at.pack * kWarp + lane) {}

  /// f(place in the plane, offset from the plane's first) for the places of this thread.
  template <class F>
  __device__ void each(const Windows& s, const F& f) const {
    const int width = columns.size(), places = rows.size() * width;
    for (int t = warp; t < places; t += kWarps) {
      const int h = t / width, place = (rows.begin + h) * s.w.size + columns.begin + t - h * width;
      f(place, place * s.c);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock, 3)
    large_max_pool_kernel(Windows s, RowPlaces places, const T* x, T* y, int32_t* index) {
  using C = compute_t<T>;
  __shared__ C values[kWarps][kWarp];
  __shared__ int32_t winners[kWarps][kWarp];
  const auto at = places(blockIdx.x);
  const SharedWindow window(s, at);
  C best = 0;
  int32_t winner = -1;
  if (window.channel < s.c) {
    const T* const from = x + s.input(at.image, 0, 0) + window.channel;
    window.each(s, [&](int place, int64_t offset) {
      const C value = static_cast<C>(from[offset]);
      if (winner >= 0 && !beats(value, best)) return;
      best = value;
      winner = place;
    });
  }
  values[window.warp][window.lane] = best;
  winners[window.warp][window.lane] = winner;
  __syncthreads();
  if (window.warp > 0 || window.channel >= s.c) return;
  // Warps took turns: of equal values the one of the lowest place is the first, and so of NaN.
  for (int other = 1; other < kWarps; ++other) {
    const C value = values[other][window.lane];
    const int32_t place = winners[other][window.lane];
    if (place < 0) continue;
    const bool same = value == best || (value != value && best != best);
    if (same ? place > winner : !beats(value, best)) continue;
    best = value;
    winner = place;
  }
  const int64_t to = s.output(at.image, at.h, at.w) + window.channel;
  y[to] = static_cast<T>(best);
  if (index) index[to] = winner;
}

template <class T>
__global__ void __launch_bounds__(kBlock, 3) large_avg_pool_kernel(Windows s, RowPlaces places, const T* x, T* y) {
  using C = compute_t<T>;
  __shared__ double sums[kWarps][kWarp];
  const auto at = places(blockIdx.x);
  const SharedWindow window(s, at);
  double sum = 0;
  if (window.channel < s.c) {
    const T* const from = x + s.input(at.image, 0, 0) + window.channel;
    window.each(s, [&](int, int64_t offset) { sum += static_cast<double>(static_cast<C>(from[offset])); });
  }
  sums[window.warp][window.lane] = sum;
  __syncthreads();
  if (window.warp > 0 || window.channel >= s.c) return;
  for (int other = 1; other < kWarps; ++other) sum += sums[other][window.lane];
  y[s.output(at.image, at.h, at.w) + window.channel] =
      static_cast<T>(static_cast<C>(sum / s.divisor<double>(at.h, at.w)));
}

/// dx at every place: the sum over the windows that cover it of share(output, place, pack of dy).
template <class T, int V, class Share>
__global__ void __launch_bounds__(kBlock, 3)
    gather_windows_kernel(Windows s, RowPlaces places, Share share, const T* dy, T* dx) {
  using C = compute_t<T>;
  const uint32_t item = item_of_thread();
  if (item >= places.count) return;
  const auto at = places(item);
  const Span rows = s.h.outputs_over(at.h), columns = s.w.outputs_over(at.w);
  C sum[V] = {};
  for (int h = rows.begin; h < rows.end; ++h) {
    for (int w = columns.begin; w < columns.end; ++w) {
      const int64_t output = s.output(at.image, h, w) + at.pack * V;
      const auto shares = share.template of<V>(s, output, h, w, at.h * s.w.size + at.w);
      const auto g = load_pack<V>(dy + output);
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) sum[k] += shares(static_cast<C>(g.v[k]), k);
    }
  }
  Pack<T, V> to;
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) to.v[k] = static_cast<T>(sum[k]);
  store_pack(dx + s.input(at.image, at.h, at.w) + at.pack * V, to);
}

/// All of dy to the place that has won.
struct ToWinner {
  const int32_t* index;

  template <int V>
  struct Shares {
    Pack<int32_t, V> winners;
    int32_t place;
    template <class C>
    __device__ C operator()(C g, int k) const {
      return winners.v[k] == place ? g : C(0);
    }
  };
  template <int V>
  __device__ Shares<V> of(const Windows&, int64_t output, int, int, int place) const {
    return {load_pack<V>(index + output), place};
  }
};

/// An equal part of dy to every place.
template <class C>
struct ToAll {
  struct Shares {
    C part;
    __device__ C operator()(C g, int) const { return g * part; }
  };
  template <int V>
  __device__ Shares of(const Windows& s, int64_t, int h, int w, int) const {
    return {C(1) / s.divisor<C>(h, w)};
  }
};

/// f<V>(packs of a place) with packs of 128 bits, or single elements.
template <class T, class F>
void with_packs(int64_t channels, bool aligned, const F& f) {
  if (aligned && channels % kWide<T> == 0)
    f.template operator()<kWide<T>>(channels / kWide<T>);
  else
    f.template operator()<1>(channels);
}

bool is_aligned_index(const Tensor& index, DType dtype) { return is_aligned(index, 16 / size_of(dtype) * 4); }

unsigned blocks_of(const RowPlaces& places) { return (places.count + kBlock - 1) / kBlock; }

int64_t blocks_of_channels(int64_t channels) { return ceil_div(channels, kWarp); }

template <class T, class Share>
void gather_windows(const Tensor& dy, const PoolWindow& window, bool aligned, const Share& share, Tensor& dx) {
  const Windows s(dx, dy, window);
  with_packs<T>(s.c, aligned && is_aligned(dy, 16) && is_aligned(dx, 16), [&]<int V>(int64_t packs) {
    in_rows(s.n, s.h.size, s.w.size, packs, [&](const RowPlaces& places) {
      launch(blocks_of(places), kBlock, 0, gather_windows_kernel<T, V, Share>, s, places, share, dy.data<T>(),
             dx.data<T>());
    });
  });
}

}  // namespace

void max_pool(const Tensor& x, const PoolWindow& window, Tensor& out, Tensor& index) {
  const Tensor image = raw::channels_last(x);
  const Windows s(image, out, window);
  int32_t* const winners = data_or_null<int32_t>(index);
  dispatch_floating("max_pool", x.dtype(), [&]<class T>() {
    if (s.large()) {
      in_rows(s.n, s.h.outputs, s.w.outputs, blocks_of_channels(s.c), [&](const RowPlaces& places) {
        launch(places.count, kBlock, 0, large_max_pool_kernel<T>, s, places, image.data<T>(), out.data<T>(), winners);
      });
      return;
    }
    const bool aligned = is_aligned(image, 16) && is_aligned(out, 16) && is_aligned_index(index, x.dtype());
    with_packs<T>(s.c, aligned, [&]<int V>(int64_t packs) {
      in_rows(s.n, s.h.outputs, s.w.outputs, packs, [&](const RowPlaces& places) {
        launch(blocks_of(places), kBlock, 0, max_pool_kernel<T, V>, s, places, image.data<T>(), out.data<T>(), winners);
      });
    });
  });
}

void max_pool_grad(const Tensor& dy, const Tensor& index, const PoolWindow& window, Tensor& dx) {
  const Tensor incoming = raw::channels_last(dy);
  dispatch_floating("max_pool", dx.dtype(), [&]<class T>() {
    gather_windows<T>(incoming, window, is_aligned_index(index, dx.dtype()), ToWinner{index.data<int32_t>()}, dx);
  });
}

void avg_pool(const Tensor& x, const PoolWindow& window, Tensor& out) {
  const Tensor image = raw::channels_last(x);
  const Windows s(image, out, window);
  dispatch_floating("avg_pool", x.dtype(), [&]<class T>() {
    if (s.large()) {
      in_rows(s.n, s.h.outputs, s.w.outputs, blocks_of_channels(s.c), [&](const RowPlaces& places) {
        launch(places.count, kBlock, 0, large_avg_pool_kernel<T>, s, places, image.data<T>(), out.data<T>());
      });
      return;
    }
    with_packs<T>(s.c, is_aligned(image, 16) && is_aligned(out, 16), [&]<int V>(int64_t packs) {
      in_rows(s.n, s.h.outputs, s.w.outputs, packs, [&](const RowPlaces& places) {
        launch(blocks_of(places), kBlock, 0, avg_pool_kernel<T, V>, s, places, image.data<T>(), out.data<T>());
      });
    });
  });
}

void avg_pool_grad(const Tensor& dy, const PoolWindow& window, Tensor& dx) {
  const Tensor incoming = raw::channels_last(dy);
  dispatch_floating("avg_pool", dx.dtype(),
                    [&]<class T>() { gather_windows<T>(incoming, window, true, ToAll<compute_t<T>>{}, dx); });
}

}  // namespace weft::WEFT_GPU
