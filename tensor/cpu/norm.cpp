// Batch norm, on channels-last memory ([rows, C]) and on planes ([N, C, S]). Sums over the batch are in double, in
// chunks of a fixed size that are joined in order.
#include <algorithm>
#include <cmath>

#include "tensor/cpu/loop.h"
#include "tensor/cpu/rows.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

/// How the channels of a dense tensor [N, C, …] lie in memory.
struct Channels {
  bool last;  // element (r, c) at r · C + c, else (n, c, s) at (n · C + c) · S + s
  int64_t n, c, s = 1, rows;

  explicit Channels(const Tensor& x)
      : last(true), n(x.sizes()[0]), c(x.sizes()[1]), rows(x.numel() / std::max<int64_t>(1, c)) {
    for (int64_t d = 2; d < x.dim(); ++d) s *= x.sizes()[d];
    last = s == 1 || (x.is_channels_last() && c > 1);
    WEFT_ASSERT(last || x.is_contiguous());
  }
  /// Rows of a chunk.
  int64_t chunk() const { return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, c)); }
};

/// x itself, or a copy, in y's layout.
Tensor in_layout_of(const Tensor& y, const Tensor& x) {
  return y.is_contiguous() ? raw::contiguous(x) : raw::channels_last(x);
}

/// A number for each channel, made by f(c).
template <class C, class F>
Tensor per_channel(int64_t channels, const F& f) {
  Tensor t = empty({channels}, dtype_of<C>::value);
  C* p = t.data<C>();
  for (int64_t c = 0; c < channels; ++c) p[c] = static_cast<C>(f(c));
  return t;
}

/// y = f(c, element…) over all elements; f's values for a channel are arrays read at c.
template <class T, class F, class... In>
void map_channels(const Channels& at, const F& f, T* y, const In*... x) {
  using C = compute_t<T>;
  if (at.last) {
    parallel_for(at.rows, std::max<int64_t>(1, kGrain / at.c), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t base = r * at.c;
#pragma GCC ivdep
        for (int64_t c = 0; c < at.c; ++c) y[base + c] = static_cast<T>(static_cast<C>(f(c, load(x[base + c])...)));
      }
    });
    return;
  }
  parallel_for(at.n * at.c, std::max<int64_t>(1, kGrain / at.s), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t base = plane * at.s, c = plane % at.c;
#pragma GCC ivdep
      for (int64_t i = 0; i < at.s; ++i) y[base + i] = static_cast<T>(static_cast<C>(f(c, load(x[base + i])...)));
    }
  });
}

/// For each channel Σ dy and Σ dy · (x - mean), as [2, C] in f64.
template <class T, class C>
Tensor gradient_sums(const Channels& at, const T* dy, const T* x, const C* mean) {
  const int64_t parts = at.rows == 0 ? 0 : at.last ? (at.rows + at.chunk() - 1) / at.chunk() : at.n;
  Tensor partial = zeros({std::max<int64_t>(parts, 1), 2, at.c}, DType::f64);
  double* const p = partial.data<double>();
  if (at.last) {
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        double *const a = p + k * 2 * at.c, *const b = a + at.c;
        const int64_t stop = std::min(at.rows, (k + 1) * at.chunk());
        for (int64_t r = k * at.chunk(); r < stop; ++r) {
          const T *g = dy + r * at.c, *v = x + r * at.c;
#pragma GCC ivdep
          for (int64_t c = 0; c < at.c; ++c) {
            a[c] += static_cast<double>(load(g[c]));
            b[c] += static_cast<double>(load(g[c]) * (load(v[c]) - mean[c]));
          }
        }
      }
    });
  } else if (parts > 0) {
    parallel_for(at.n * at.c, std::max<int64_t>(1, kGrain / at.s), [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T *g = dy + plane * at.s, *v = x + plane * at.s;
        const int64_t c = plane % at.c;
        double* const a = p + plane / at.c * 2 * at.c + c;
        const C m = mean[c];
        a[0] = row_sum<C>(at.s, [=](int64_t i) { return load(g[i]); });
        a[at.c] = row_sum<C>(at.s, [=](int64_t i) { return load(g[i]) * (load(v[i]) - m); });
      }
    });
  }
  for (int64_t k = 1; k < parts; ++k)
    for (int64_t i = 0; i < 2 * at.c; ++i) p[i] += p[k * 2 * at.c + i];
  return raw::select(partial, 0, 0);
}

}  // namespace

void batch_norm_statistics(const Tensor& x, double eps, double momentum, Tensor& mean, Tensor& rstd,
                           Tensor& running_mean, Tensor& running_var) {
  Shape sizes = Shape::filled(x.dim(), 1);
  sizes[1] = x.sizes()[1];
  const int64_t channels = sizes[1];
  Tensor variance = empty(sizes, DType::f64), average = empty(sizes, DType::f64);
  var(x, 0, variance, average);
  const double *v = variance.data<double>(), *m = average.data<double>();
  const double count = static_cast<double>(x.numel() / channels);
  dispatch_floating("batch_norm", mean.dtype(), [&]<class C>() {
    using F = compute_t<C>;
    C *to_mean = mean.data<C>(), *to_rstd = rstd.data<C>();
    C* running_m = running_mean.defined() ? running_mean.data<C>() : nullptr;
    C* running_v = running_var.defined() ? running_var.data<C>() : nullptr;
    for (int64_t c = 0; c < channels; ++c) {
      to_mean[c] = static_cast<C>(static_cast<F>(m[c]));
      to_rstd[c] = static_cast<C>(static_cast<F>(1 / std::sqrt(v[c] + eps)));
      auto move = [&](C& running, double value) {
        running =
            static_cast<C>(static_cast<F>((1 - momentum) * static_cast<double>(load(running)) + momentum * value));
      };
      if (running_m) move(running_m[c], m[c]);
      if (running_v) move(running_v[c], v[c] * count / (count - 1));  // the unbiased estimate
    }
  });
}

void batch_norm(const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight, const Tensor& bias,
                Tensor& y) {
  if (x.numel() == 0) return;
  const Channels at(y);
  const Tensor dense = in_layout_of(y, x);
  dispatch_floating("batch_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const C *m = mean.data<C>(), *r = rstd.data<C>();
    const C *w = weight.defined() ? weight.data<C>() : nullptr, *b = bias.defined() ? bias.data<C>() : nullptr;
    const Tensor scales = per_channel<C>(at.c, [&](int64_t c) { return w ? w[c] * r[c] : r[c]; });
    const Tensor shifts = per_channel<C>(at.c, [&](int64_t c) { return b ? b[c] : C(0); });
    const C *scale = scales.data<C>(), *shift = shifts.data<C>();
    map_channels(
        at, [=](int64_t c, C v) { return (v - m[c]) * scale[c] + shift[c]; }, y.data<T>(), dense.data<T>());
  });
}

void batch_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                     bool training, Tensor& dx, Tensor& dweight, Tensor& dbias) {
  const Channels at(x);
  const Tensor dense = in_layout_of(x, dy);
  dispatch_floating("batch_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const C *m = mean.data<C>(), *r = rstd.data<C>(), *w = weight.defined() ? weight.data<C>() : nullptr;
    const T *g = dense.data<T>(), *v = x.data<T>();
    const bool sums_needed = (training && dx.defined()) || dweight.defined() || dbias.defined();
    const Tensor sums = sums_needed ? gradient_sums(at, g, v, m) : zeros({2, at.c}, DType::f64);
    const double *s1 = sums.data<double>(), *s2 = s1 + at.c;
    for (int64_t c = 0; c < at.c; ++c) {
      if (dweight.defined()) dweight.data<C>()[c] = static_cast<C>(s2[c] * static_cast<double>(r[c]));
      if (dbias.defined()) dbias.data<C>()[c] = static_cast<C>(s1[c]);
    }
    if (!dx.defined() || x.numel() == 0) return;
    const Tensor scales = per_channel<C>(at.c, [&](int64_t c) { return w ? w[c] * r[c] : r[c]; });
    const C* scale = scales.data<C>();
    if (!training) {
      map_channels(
          at, [=](int64_t c, C d) { return d * scale[c]; }, dx.data<T>(), g);
      return;
    }
    const double count = static_cast<double>(at.rows);
    const Tensor firsts = per_channel<C>(at.c, [&](int64_t c) { return s1[c] / count; });
    const Tensor seconds = per_channel<C>(
        at.c, [&](int64_t c) { return s2[c] / count * static_cast<double>(r[c]) * static_cast<double>(r[c]); });
    const C *first = firsts.data<C>(), *second = seconds.data<C>();
    map_channels(
        at, [=](int64_t c, C d, C value) { return (d - first[c] - (value - m[c]) * second[c]) * scale[c]; },
        dx.data<T>(), g, v);
  });
}

}  // namespace weft::cpu_kernels
