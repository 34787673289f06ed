// Softmax and its logarithm along one dimension of [outer, n, inner], with their gradients. A row without a finite
// maximum (all -infinity, or an infinity in it) gives NaN, in that row only.
#include <algorithm>
#include <cmath>

#include "tensor/along.h"
#include "tensor/cpu/loop.h"
#include "tensor/cpu/math.h"
#include "tensor/cpu/rows.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

constexpr int64_t kColumns = 64;

struct Lines : Along {
  using Along::Along;
  /// body(base) for each row.
  template <class Body>
  void rows(const Body& body) const {
    parallel_for(outer, std::max<int64_t>(1, kGrain / n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) body(r * n);
    });
  }
  /// body(base, width) for each block of columns, whose elements are `inner` apart.
  template <class Body>
  void columns(const Body& body) const {
    const int64_t blocks = (inner + kColumns - 1) / kColumns;
    parallel_for(outer * blocks, std::max<int64_t>(1, kGrain / (n * std::min(inner, kColumns))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t first = i % blocks * kColumns;
                     body(i / blocks * n * inner + first, std::min(kColumns, inner - first));
                   }
                 });
  }
};

/// NaN is left to the exponentials, where it spreads over the row.
template <class T>
compute_t<T> max_of(const T* x, int64_t n) {
  using C = compute_t<T>;
  C best = load(x[0]);
  int64_t i = 0;
  if (n >= kRowLanes) {
    C lane[kRowLanes];
    for (int64_t l = 0; l < kRowLanes; ++l) lane[l] = load(x[l]);
    for (i = kRowLanes; i + kRowLanes <= n; i += kRowLanes)
      for (int64_t l = 0; l < kRowLanes; ++l) {
        const C v = load(x[i + l]);
        lane[l] = v > lane[l] ? v : lane[l];
      }
    for (int64_t l = 0; l < kRowLanes; ++l) best = lane[l] > best ? lane[l] : best;
  }
  for (; i < n; ++i) best = load(x[i]) > best ? load(x[i]) : best;
  return best;
}

template <bool logarithm, class T>
void softmax_row(const T* x, T* y, int64_t n) {
  using C = compute_t<T>;
  const C m = max_of(x, n);
  if constexpr (logarithm) {
    const double total = row_sum<C>(n, [=](int64_t i) { return math::exp(load(x[i]) - m); });
    const C shift = static_cast<C>(math::log(total));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>((load(x[i]) - m) - shift);
  } else if constexpr (std::is_same_v<T, C>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = math::exp(x[i] - m);
    const C scale = static_cast<C>(1 / row_sum<C>(n, [=](int64_t i) { return y[i]; }));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  } else {  // what is stored has too few digits to be summed
    const C scale = static_cast<C>(1 / row_sum<C>(n, [=](int64_t i) { return math::exp(load(x[i]) - m); }));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(math::exp(load(x[i]) - m) * scale);
  }
}

template <bool logarithm, class T>
void softmax_columns(const T* x, T* y, int64_t n, int64_t step, int64_t width) {
  using C = compute_t<T>;
  C m[kColumns], shift[kColumns];
  double total[kColumns] = {};
  for (int64_t c = 0; c < width; ++c) m[c] = load(x[c]);
  for (int64_t i = 1; i < n; ++i)
    for (int64_t c = 0; c < width; ++c) m[c] = load(x[i * step + c]) > m[c] ? load(x[i * step + c]) : m[c];
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < width; ++c) total[c] += static_cast<double>(math::exp(load(x[i * step + c]) - m[c]));
  for (int64_t c = 0; c < width; ++c) shift[c] = static_cast<C>(logarithm ? math::log(total[c]) : 1 / total[c]);
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
    for (int64_t c = 0; c < width; ++c) {
      const C d = load(x[i * step + c]) - m[c];
      y[i * step + c] = static_cast<T>(logarithm ? d - shift[c] : math::exp(d) * shift[c]);
    }
  }
}

template <bool logarithm>
void run(const char* op, const Tensor& x, int64_t dim, Tensor& y) {
  WEFT_ASSERT(y.is_contiguous());
  if (x.numel() == 0) return;
  const Tensor dense = raw::contiguous(x);
  const Lines a(dense, dim);
  dispatch_floating(op, x.dtype(), [&]<class T>() {
    const T* from = dense.data<T>();
    T* to = y.data<T>();
    if (a.inner == 1)
      a.rows([&](int64_t at) { softmax_row<logarithm>(from + at, to + at, a.n); });
    else
      a.columns(
          [&](int64_t at, int64_t width) { softmax_columns<logarithm>(from + at, to + at, a.n, a.inner, width); });
  });
}

template <bool logarithm, class T>
void grad_row(const T* dy, const T* y, T* dx, int64_t n) {
  using C = compute_t<T>;
  const C total =
      static_cast<C>(row_sum<C>(n, [=](int64_t i) { return logarithm ? load(dy[i]) : load(dy[i]) * load(y[i]); }));
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const C g = load(dy[i]), v = load(y[i]);
    dx[i] = static_cast<T>(logarithm ? g - math::exp(v) * total : v * (g - total));
  }
}

template <bool logarithm, class T>
void grad_columns(const T* dy, const T* y, T* dx, int64_t n, int64_t step, int64_t width) {
  using C = compute_t<T>;
  double total[kColumns] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < width; ++c) {
      const C g = load(dy[i * step + c]);
      total[c] += static_cast<double>(logarithm ? g : g * load(y[i * step + c]));
    }
  for (int64_t i = 0; i < n; ++i) {
#pragma GCC ivdep
    for (int64_t c = 0; c < width; ++c) {
      const C g = load(dy[i * step + c]), v = load(y[i * step + c]), t = static_cast<C>(total[c]);
      dx[i * step + c] = static_cast<T>(logarithm ? g - math::exp(v) * t : v * (g - t));
    }
  }
}

template <bool logarithm>
void run_grad(const char* op, const Tensor& dy, const Tensor& y, int64_t dim, Tensor& dx) {
  WEFT_ASSERT(y.is_contiguous() && dx.is_contiguous());
  if (y.numel() == 0) return;
  const Tensor dense = raw::contiguous(dy);
  const Lines a(y, dim);
  dispatch_floating(op, y.dtype(), [&]<class T>() {
    const T *g = dense.data<T>(), *v = y.data<T>();
    T* to = dx.data<T>();
    if (a.inner == 1)
      a.rows([&](int64_t at) { grad_row<logarithm>(g + at, v + at, to + at, a.n); });
    else
      a.columns(
          [&](int64_t at, int64_t width) { grad_columns<logarithm>(g + at, v + at, to + at, a.n, a.inner, width); });
  });
}

}  // namespace

void softmax(const Tensor& x, int64_t dim, Tensor& y) { run<false>("softmax", x, dim, y); }
void log_softmax(const Tensor& x, int64_t dim, Tensor& y) { run<true>("log_softmax", x, dim, y); }
void softmax_grad(const Tensor& dy, const Tensor& y, int64_t dim, Tensor& dx) {
  run_grad<false>("softmax", dy, y, dim, dx);
}
void log_softmax_grad(const Tensor& dy, const Tensor& y, int64_t dim, Tensor& dx) {
  run_grad<true>("log_softmax", dy, y, dim, dx);
}

}  // namespace weft::cpu_kernels
