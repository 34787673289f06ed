// Pooling over channels-last images: every inner loop runs over channels, without branches. Gradients are gathered:
// each input place asks the windows that cover it, so it is written once, needs no zeros first, and rows are
// independent.
#include <array>
#include <vector>

#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

/// Channels that are summed at a time, in a buffer on the stack.
constexpr int64_t kBlock = 256;

struct Span {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

/// Input places of output o.
Span places_of(int64_t o, int64_t kernel, int64_t stride, int64_t padding, int64_t size) {
  const int64_t start = o * stride - padding;
  return {std::max<int64_t>(start, 0), std::min(start + kernel, size)};
}

/// Outputs whose windows cover input place i.
Span outputs_over(int64_t i, int64_t kernel, int64_t stride, int64_t padding, int64_t outputs) {
  const int64_t at = i + padding;
  const int64_t begin = at < kernel ? 0 : (at - kernel) / stride + 1, end = std::min(at / stride + 1, outputs);
  return {begin, std::max(begin, end)};
}

struct Sizes {
  int64_t n, c, h, w;  // of the input
  int64_t out_h, out_w;
  Sizes(const Tensor& x, const Tensor& y)
      : n(x.sizes()[0]), c(x.sizes()[1]), h(x.sizes()[2]), w(x.sizes()[3]), out_h(y.sizes()[2]), out_w(y.sizes()[3]) {
    WEFT_ASSERT(x.is_channels_last() && y.is_channels_last() && y.sizes()[0] == n && y.sizes()[1] == c);
  }
};

int64_t rows_per_piece(int64_t work_of_row) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, work_of_row)); }

/// The places of one window: where each channel vector starts, and its number in the plane.
template <class T>
struct Taps {
  std::vector<const T*> values;
  std::vector<int32_t> places;

  explicit Taps(int64_t most) : values(static_cast<size_t>(most)), places(static_cast<size_t>(most)) {}
  size_t set(const T* plane, Span rows, Span columns, int64_t width, int64_t channels) {
    size_t count = 0;
    for (int64_t h = rows.begin; h < rows.end; ++h)
      for (int64_t w = columns.begin; w < columns.end; ++w, ++count) {
        places[count] = static_cast<int32_t>(h * width + w);
        values[count] = plane + (h * width + w) * channels;
      }
    return count;
  }
};

/// A later value wins where it is larger or the first NaN.
template <class C>
bool beats(C value, C best) {
  return !(value <= best) & (best == best);
}

/// One place of the window at a time over all channels, whose results stay in the first-level cache: loops that gcc
/// turns into vector code, which it does not for all places at once.
template <bool Indexed, class T>
void max_of(const Taps<T>& taps, size_t count, int64_t channels, T* y, int32_t* index) {
  std::copy_n(taps.values[0], channels, y);
  if constexpr (Indexed) std::fill_n(index, channels, taps.places[0]);
  for (size_t t = 1; t < count; ++t) {
    const T* const x = taps.values[t];
    const int32_t place = taps.places[t];
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      const auto value = load(x[c]), best = load(y[c]);
      const bool wins = beats(value, best);
      y[c] = static_cast<T>(wins ? value : best);
      if constexpr (Indexed) index[c] = wins ? place : index[c];
    }
  }
}

template <bool Indexed, class T>
void max_forward(const Tensor& x, const PoolWindow& p, Tensor& out, int32_t* index) {
  const Sizes s(x, out);
  const T* const from = x.data<T>();
  T* const to = out.data<T>();
  const int64_t area = std::min(p.kernel.h, s.h) * std::min(p.kernel.w, s.w);
  parallel_for(s.n * s.out_h, rows_per_piece(s.out_w * s.c * area), [&](int64_t begin, int64_t end) {
    Taps<T> taps(area);
    for (int64_t row = begin; row < end; ++row) {
      const T* const plane = from + row / s.out_h * s.h * s.w * s.c;
      const Span rows = places_of(row % s.out_h, p.kernel.h, p.stride.h, p.padding.h, s.h);
      for (int64_t ow = 0; ow < s.out_w; ++ow) {
        const Span columns = places_of(ow, p.kernel.w, p.stride.w, p.padding.w, s.w);
        const size_t count = taps.set(plane, rows, columns, s.w, s.c);
        const int64_t at = (row * s.out_w + ow) * s.c;
        int32_t* const places = Indexed ? index + at : nullptr;
        max_of<Indexed>(taps, count, s.c, to + at, places);
      }
    }
  });
}

/// Runs add(output, sum) for every window over an input place and writes the sums to dx; `output` is the window's
/// number in its plane, one(output, to) is the short way where there is only one window.
template <class T, class One, class Add>
void gather_windows(const Sizes& s, const PoolWindow& p, T* dx, const One& one, const Add& add) {
  std::vector<Span> over_columns;
  for (int64_t w = 0; w < s.w; ++w)
    over_columns.push_back(outputs_over(w, p.kernel.w, p.stride.w, p.padding.w, s.out_w));
  const int64_t per_place = 1 + p.kernel.h * p.kernel.w / (p.stride.h * p.stride.w);
  parallel_for(s.n * s.h, rows_per_piece(s.w * s.c * per_place), [&](int64_t begin, int64_t end) {
    std::array<compute_t<T>, kBlock> sum;
    for (int64_t row = begin; row < end; ++row) {
      const int64_t first = row / s.h * s.out_h * s.out_w, h = row % s.h;
      const Span rows = outputs_over(h, p.kernel.h, p.stride.h, p.padding.h, s.out_h);
      for (int64_t w = 0; w < s.w; ++w) {
        const Span columns = over_columns[static_cast<size_t>(w)];
        T* const to = dx + (row * s.w + w) * s.c;
        const auto place = static_cast<int32_t>(h * s.w + w);
        if (rows.size() * columns.size() == 0) {
          std::fill_n(to, s.c, T(0));
        } else if (rows.size() * columns.size() == 1) {
          one(first + rows.begin * s.out_w + columns.begin, place, to);
        } else {
          for (int64_t c = 0; c < s.c; c += kBlock) {
            const int64_t channels = std::min(kBlock, s.c - c);
            std::fill_n(sum.begin(), channels, compute_t<T>(0));
            for (int64_t oh = rows.begin; oh < rows.end; ++oh)
              for (int64_t ow = columns.begin; ow < columns.end; ++ow)
                add(first + oh * s.out_w + ow, place, c, channels, sum.data());
            for (int64_t i = 0; i < channels; ++i) to[c + i] = static_cast<T>(sum[static_cast<size_t>(i)]);
          }
        }
      }
    }
  });
}

/// v where it wins, else 0; of 16-bit types by their bits, which becomes vector code where a choice of objects does
/// not.
template <class T>
T share(bool wins, T v) {
  if constexpr (sizeof(T) == 2) {
    v.bits = static_cast<uint16_t>(wins ? v.bits : 0);
    return v;
  } else {
    return wins ? v : T(0);
  }
}

/// The divisor of each window along one dimension: all its places, or those inside the input.
std::vector<int64_t> window_lengths(int64_t outputs, int64_t kernel, int64_t stride, int64_t padding, int64_t size,
                                    bool count_padding) {
  std::vector<int64_t> lengths;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t start = o * stride - padding;
    lengths.push_back(count_padding ? std::min(start + kernel, size + padding) - start
                                    : places_of(o, kernel, stride, padding, size).size());
  }
  return lengths;
}

/// 1 / divisor for each window of a plane.
std::vector<double> window_scales(const Sizes& s, const PoolWindow& p) {
  const auto heights = window_lengths(s.out_h, p.kernel.h, p.stride.h, p.padding.h, s.h, p.count_padding);
  const auto widths = window_lengths(s.out_w, p.kernel.w, p.stride.w, p.padding.w, s.w, p.count_padding);
  std::vector<double> scales;
  for (const int64_t h : heights)
    for (const int64_t w : widths) scales.push_back(1 / static_cast<double>(h * w));
  return scales;
}

template <class Sum, class T>
void avg_forward(const Tensor& x, const PoolWindow& p, Tensor& out) {
  const Sizes s(x, out);
  const T* const from = x.data<T>();
  T* const to = out.data<T>();
  const std::vector<double> scales = window_scales(s, p);
  const int64_t area = std::min(p.kernel.h, s.h) * std::min(p.kernel.w, s.w);
  parallel_for(s.n * s.out_h, rows_per_piece(s.out_w * s.c * area), [&](int64_t begin, int64_t end) {
    std::array<Sum, kBlock> sum;
    for (int64_t row = begin; row < end; ++row) {
      const T* const plane = from + row / s.out_h * s.h * s.w * s.c;
      const Span rows = places_of(row % s.out_h, p.kernel.h, p.stride.h, p.padding.h, s.h);
      for (int64_t ow = 0; ow < s.out_w; ++ow) {
        const Span columns = places_of(ow, p.kernel.w, p.stride.w, p.padding.w, s.w);
        const auto scale = static_cast<Sum>(scales[static_cast<size_t>(row % s.out_h * s.out_w + ow)]);
        for (int64_t c = 0; c < s.c; c += kBlock) {
          const int64_t channels = std::min(kBlock, s.c - c);
          std::fill_n(sum.begin(), channels, Sum(0));
          for (int64_t h = rows.begin; h < rows.end; ++h)
            for (int64_t w = columns.begin; w < columns.end; ++w) {
              const T* const v = plane + (h * s.w + w) * s.c + c;
              for (int64_t i = 0; i < channels; ++i) sum[static_cast<size_t>(i)] += static_cast<Sum>(load(v[i]));
            }
          T* const y = to + (row * s.out_w + ow) * s.c + c;
          for (int64_t i = 0; i < channels; ++i)
            y[i] = static_cast<T>(static_cast<compute_t<T>>(sum[static_cast<size_t>(i)] * scale));
        }
      }
    }
  });
}

}  // namespace

void max_pool(const Tensor& x, const PoolWindow& window, Tensor& out, Tensor& index) {
  const Tensor image = raw::channels_last(x);
  dispatch_floating("max_pool", x.dtype(), [&]<class T>() {
    if (index.defined())
      max_forward<true, T>(image, window, out, index.data<int32_t>());
    else
      max_forward<false, T>(image, window, out, nullptr);
  });
}

void max_pool_grad(const Tensor& dy, const Tensor& index, const PoolWindow& window, Tensor& dx) {
  const Tensor incoming = raw::channels_last(dy);
  const Sizes s(dx, index);
  const int32_t* const winners = index.data<int32_t>();
  dispatch_floating("max_pool", dx.dtype(), [&]<class T>() {
    const T* const g = incoming.data<T>();
    gather_windows(
        s, window, dx.data<T>(),
        [&, channels = s.c](int64_t output, int32_t place, T* to) {
          const T* const v = g + output * channels;
          const int32_t* const winner = winners + output * channels;
#pragma GCC ivdep
          for (int64_t i = 0; i < channels; ++i) to[i] = share(winner[i] == place, v[i]);
        },
        [&](int64_t output, int32_t place, int64_t c, int64_t channels, compute_t<T>* sum) {
          const T* const v = g + output * s.c + c;
          const int32_t* const winner = winners + output * s.c + c;
#pragma GCC ivdep
          for (int64_t i = 0; i < channels; ++i) sum[i] += winner[i] == place ? load(v[i]) : compute_t<T>(0);
        });
  });
}

void avg_pool(const Tensor& x, const PoolWindow& window, Tensor& out) {
  const Tensor image = raw::channels_last(x);
  const bool small = window.kernel.h * window.kernel.w <= 64;  // a float sum of few terms is exact enough
  dispatch_floating("avg_pool", x.dtype(), [&]<class T>() {
    if (small)
      avg_forward<compute_t<T>, T>(image, window, out);
    else
      avg_forward<double, T>(image, window, out);
  });
}

void avg_pool_grad(const Tensor& dy, const PoolWindow& window, Tensor& dx) {
  const Tensor incoming = raw::channels_last(dy);
  const Sizes s(dx, incoming);
  const std::vector<double> scales = window_scales(s, window);
  const int64_t plane = s.out_h * s.out_w;
  dispatch_floating("avg_pool", dx.dtype(), [&]<class T>() {
    const T* const g = incoming.data<T>();
    auto scale = [&](int64_t output) { return static_cast<compute_t<T>>(scales[static_cast<size_t>(output % plane)]); };
    gather_windows(
        s, window, dx.data<T>(),
        [&, channels = s.c](int64_t output, int32_t, T* to) {
          const T* const v = g + output * channels;
          const auto share = scale(output);
#pragma GCC ivdep
          for (int64_t i = 0; i < channels; ++i) to[i] = static_cast<T>(load(v[i]) * share);
        },
        [&](int64_t output, int32_t, int64_t c, int64_t channels, compute_t<T>* sum) {
          const T* const v = g + output * s.c + c;
          const auto share = scale(output);
#pragma GCC ivdep
          for (int64_t i = 0; i < channels; ++i) sum[i] += load(v[i]) * share;
        });
  });
}

}  // namespace weft::cpu_kernels
