// Layer, root-mean-square and group norm: statistics of contiguous rows, gradients of weights in chunks of a fixed size
// that are joined in order.
#include <algorithm>
#include <cmath>

#include "tensor/cpu/loop.h"
#include "tensor/cpu/rows.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

template <class C>
const C* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<C>() : nullptr;
}

template <class C>
struct Statistics {
  C mean, rstd;
};

/// Of one row; `centred` false: around 0.
template <class T, class C = compute_t<T>>
Statistics<C> statistics_of(const T* x, int64_t n, double eps, bool centred) {
  const double count = static_cast<double>(n);
  const double mean =
      centred ? row_sum<double>(n, [=](int64_t i) { return static_cast<double>(load(x[i])); }) / count : 0;
  const C m = static_cast<C>(mean);
  const double squares = row_sum<C>(n, [=](int64_t i) { return (load(x[i]) - m) * (load(x[i]) - m); });
  return {m, static_cast<C>(1 / std::sqrt(squares / count + eps))};
}

/// to[i] = Σ over parts of from[part · n + i].
template <class C>
void join(Tensor& to, const double* from, int64_t parts, int64_t stride) {
  if (!to.defined()) return;
  C* y = to.data<C>();
  for (int64_t i = 0; i < to.numel(); ++i) {
    double total = 0;
    for (int64_t p = 0; p < parts; ++p) total += from[p * stride + i];
    y[i] = static_cast<C>(total);
  }
}

}  // namespace

void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y, Tensor& mean,
                Tensor& rstd) {
  WEFT_ASSERT(x.is_contiguous() && y.is_contiguous());
  const int64_t rows = rstd.numel(), n = x.numel() / std::max<int64_t>(rows, 1);
  if (x.numel() == 0) return;
  dispatch_floating("layer_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const C *w = data_or_null<C>(weight), *b = data_or_null<C>(bias);
    C *means = mean.defined() ? mean.data<C>() : nullptr, *rstds = rstd.data<C>();
    parallel_for(rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T* row = from + r * n;
        T* out = to + r * n;
        const auto [m, s] = statistics_of(row, n, eps, means != nullptr);
        if (means) means[r] = m;
        rstds[r] = s;
        if (w && b) {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((load(row[i]) - m) * s * w[i] + b[i]);
        } else if (w) {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((load(row[i]) - m) * s * w[i]);
        } else {
          for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>((load(row[i]) - m) * s + (b ? b[i] : C(0)));
        }
      }
    });
  });
}

void layer_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                     Tensor& dx, Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(x.is_contiguous());
  const Tensor dense = raw::contiguous(dy);
  const int64_t rows = rstd.numel(), n = x.numel() / std::max<int64_t>(rows, 1);
  const int64_t chunk = std::max<int64_t>(8, 32768 / std::max<int64_t>(n, 1));
  const bool sums = dweight.defined() || dbias.defined();
  const int64_t parts = x.numel() == 0 ? 0 : (rows + chunk - 1) / chunk;
  const Tensor partial = zeros(sums ? Shape{parts, 2, n} : Shape{0}, DType::f64);
  dispatch_floating("layer_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const T *values = x.data<T>(), *upstream = dense.data<T>();
    T* to = dx.defined() ? dx.data<T>() : nullptr;
    const C *w = data_or_null<C>(weight), *means = data_or_null<C>(mean), *rstds = rstd.data<C>();
    parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin * chunk; r < std::min(rows, end * chunk); ++r) {
        const T *v = values + r * n, *g = upstream + r * n;
        const C m = means ? means[r] : C(0), s = rstds[r];
        if (to) {
          auto weighted = [=](int64_t i) { return w ? load(g[i]) * w[i] : load(g[i]); };
          const C first = means ? static_cast<C>(row_sum<C>(n, weighted) / static_cast<double>(n)) : C(0);
          const C second = static_cast<C>(
              row_sum<C>(n, [=](int64_t i) { return weighted(i) * ((load(v[i]) - m) * s); }) / static_cast<double>(n));
          T* out = to + r * n;
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i)
            out[i] = static_cast<T>((weighted(i) - first - (load(v[i]) - m) * s * second) * s);
        }
        if (sums) {
          double *const dw = partial.data<double>() + r / chunk * 2 * n, *const db = dw + n;
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) {
            dw[i] += static_cast<double>(load(g[i]) * ((load(v[i]) - m) * s));
            db[i] += static_cast<double>(load(g[i]));
          }
        }
      }
    });
    join<C>(dweight, partial.data<double>(), parts, 2 * n);
    join<C>(dbias, partial.data<double>() + n, parts, 2 * n);
  });
}

void group_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps, Tensor& y, Tensor& mean,
                Tensor& rstd) {
  WEFT_ASSERT(x.is_contiguous() && y.is_contiguous());
  if (x.numel() == 0) return;
  const int64_t groups = mean.sizes()[1], channels = x.sizes()[1] / groups, rows = mean.numel(), n = x.numel() / rows;
  const int64_t plane = n / channels;
  dispatch_floating("group_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const T* from = x.data<T>();
    T* to = y.data<T>();
    const C *w = data_or_null<C>(weight), *b = data_or_null<C>(bias);
    C *means = mean.data<C>(), *rstds = rstd.data<C>();
    parallel_for(rows, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const auto [m, s] = statistics_of(from + r * n, n, eps, true);
        means[r] = m;
        rstds[r] = s;
        for (int64_t k = 0; k < channels; ++k) {
          const int64_t c = r % groups * channels + k, at = r * n + k * plane;
          const C scale = w ? w[c] * s : s, shift = b ? b[c] : C(0), centre = m;
#pragma GCC ivdep
          for (int64_t i = at; i < at + plane; ++i) to[i] = static_cast<T>((load(from[i]) - centre) * scale + shift);
        }
      }
    });
  });
}

void group_norm_grad(const Tensor& dy, const Tensor& x, const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                     Tensor& dx, Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(x.is_contiguous());
  const Tensor dense = raw::contiguous(dy);
  const int64_t groups = mean.sizes()[1], all = x.sizes()[1], channels = all / groups, rows = mean.numel();
  const int64_t n = rows ? x.numel() / rows : 0, plane = n / std::max<int64_t>(channels, 1);
  const Tensor partial =
      zeros({x.sizes()[0], 2, all}, DType::f64);  // Σ dy · normalised and Σ dy, by sample and channel
  dispatch_floating("group_norm", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const T *values = x.data<T>(), *upstream = dense.data<T>();
    T* to = dx.defined() ? dx.data<T>() : nullptr;
    const C *w = data_or_null<C>(weight), *means = mean.data<C>(), *rstds = rstd.data<C>();
    parallel_for(n == 0 ? 0 : rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t r = begin; r < end; ++r) {
                     const C m = means[r], s = rstds[r];
                     double *const dw = partial.data<double>() + r / groups * 2 * all, *const db = dw + all;
                     double first = 0, second = 0;
                     for (int64_t k = 0; k < channels; ++k) {
                       const int64_t c = r % groups * channels + k;
                       const T *v = values + r * n + k * plane, *g = upstream + r * n + k * plane;
                       db[c] = row_sum<C>(plane, [=](int64_t i) { return load(g[i]); });
                       dw[c] = row_sum<C>(plane, [=](int64_t i) { return load(g[i]) * ((load(v[i]) - m) * s); });
                       const double scale = w ? static_cast<double>(w[c]) : 1.0;
                       first += scale * db[c];
                       second += scale * dw[c];
                     }
                     if (!to) continue;
                     const C a = static_cast<C>(first / static_cast<double>(n)),
                             b = static_cast<C>(second / static_cast<double>(n));
                     for (int64_t k = 0; k < channels; ++k) {
                       const C scale = w ? w[r % groups * channels + k] : C(1);
                       const int64_t at = r * n + k * plane;
#pragma GCC ivdep
                       for (int64_t i = at; i < at + plane; ++i)
                         to[i] = static_cast<T>((load(upstream[i]) * scale - a - (load(values[i]) - m) * s * b) * s);
                     }
                   }
                 });
    join<C>(dweight, partial.data<double>(), x.sizes()[0], 2 * all);
    join<C>(dbias, partial.data<double>() + all, x.sizes()[0], 2 * all);
  });
}

}  // namespace weft::cpu_kernels
