// One step of recurrent cells: all gates of a row in one loop, which becomes vector code.
#include <vector>

#include "tensor/cpu/loop.h"
#include "tensor/functors.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {
namespace {

/// Elements of the state below which a step stays on one thread: each takes a handful of exponentials.
constexpr int64_t kStepGrain = 4096;

/// Whether row n goes no further than step t.
struct Ended {
  const int64_t* lengths;
  int64_t t;

  Ended(const Tensor& lengths, int64_t t) : lengths(lengths.defined() ? lengths.data<int64_t>() : nullptr), t(t) {}
  bool operator()(int64_t n) const { return lengths && t >= lengths[n]; }
};

/// Rows of T, or of zeros where there is no tensor.
template <class T>
class Rows {
 public:
  Rows(const Tensor& x, int64_t width) : zeros_(x.defined() ? 0 : static_cast<size_t>(width)) {
    data_ = x.defined() ? x.data<T>() : zeros_.data();
    step_ = x.defined() ? x.strides()[0] : 0;
  }
  const T* operator[](int64_t n) const { return data_ + n * step_; }

 private:
  std::vector<T> zeros_;
  const T* data_;
  int64_t step_;
};

/// Calls f(n) for each row of a state, in parallel.
template <class F>
void each_row(const Tensor& state, const F& f) {
  const int64_t rows = state.sizes()[0], width = state.sizes()[1];
  parallel_for(rows, std::max<int64_t>(1, kStepGrain / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) f(n);
  });
}

/// A row that has ended: the state as it was, an output of 0.
template <class T>
void keep(int64_t width, const T* h_before, T* h, T* y) {
  std::copy_n(h_before, width, h);
  if (y) std::fill_n(y, width, T(0));
}

/// The gradient of a row that has ended: it goes past this step.
template <class T>
void pass(int64_t width, const T* dh, compute_t<T>* carry) {
  for (int64_t j = 0; j < width; ++j) carry[j] += load(dh[j]);
}

template <class T>
T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

}  // namespace

void lstm_cell(const Tensor& gates_h, const Tensor& c_before, const Tensor& h_before, const Tensor& lengths, int64_t t,
               Tensor& gates, Tensor& c, Tensor& h, Tensor& y) {
  const int64_t width = h.sizes()[1];
  const Ended ended(lengths, t);
  dispatch_floating("lstm", gates.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    T *const all_gates = gates.data<T>(), *const all_h = h.data<T>(), *const all_y = data_or_null<T>(y);
    C* const all_c = c.data<C>();
    const T *const parts = gates_h.data<T>(), *const h_old = h_before.data<T>();
    const C* const c_old = c_before.data<C>();
    each_row(h, [&](int64_t n) {
      const int64_t row = n * width;
      T* const out = all_y ? all_y + row : nullptr;
      if (ended(n)) {
        std::copy_n(c_old + row, width, all_c + row);
        return keep(width, h_old + row, all_h + row, out);
      }
      T* const g = all_gates + 4 * row;
      const T* const p = parts + 4 * row;
      const C* const old = c_old + row;
      C* const to_c = all_c + row;
      T* const to_h = all_h + row;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        const C i = math::sigmoid(load(g[j]) + load(p[j]));
        const C f = math::sigmoid(load(g[width + j]) + load(p[width + j]));
        const C m = math::tanh(load(g[2 * width + j]) + load(p[2 * width + j]));
        const C o = math::sigmoid(load(g[3 * width + j]) + load(p[3 * width + j]));
        const C cell = f * old[j] + i * m;
        g[j] = static_cast<T>(i);
        g[width + j] = static_cast<T>(f);
        g[2 * width + j] = static_cast<T>(m);
        g[3 * width + j] = static_cast<T>(o);
        to_c[j] = cell;
        to_h[j] = static_cast<T>(o * math::tanh(cell));
      }
      if (out) std::copy_n(to_h, width, out);
    });
  });
}

void lstm_cell_grad(const Tensor& dy, const Tensor& dh, const Tensor& gates, const Tensor& c_before, const Tensor& c,
                    const Tensor& lengths, int64_t t, Tensor& dgates, Tensor& carry, Tensor& dc) {
  const int64_t width = c.sizes()[1];
  const Ended ended(lengths, t);
  dispatch_floating("lstm", gates.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const Rows<T> from_output(dy, width), from_next(dh, width);
    T* const to = dgates.data<T>();
    C *const all_carry = carry.data<C>(), *const all_dc = dc.data<C>();
    const T* const all_gates = gates.data<T>();
    const C *const c_old = c_before.data<C>(), *const c_new = c.data<C>();
    each_row(c, [&](int64_t n) {
      const int64_t row = n * width;
      T* const dg = to + 4 * row;
      const T *const dy_row = from_output[n], *const dh_row = from_next[n], *const g = all_gates + 4 * row;
      C *const past = all_carry + row, *const dcell = all_dc + row;
      if (ended(n)) {
        std::fill_n(dg, 4 * width, T(0));
        return pass(width, dh_row, past);
      }
      const C *const old = c_old + row, *const cell = c_new + row;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        const C i = load(g[j]), f = load(g[width + j]), m = load(g[2 * width + j]), o = load(g[3 * width + j]);
        const C d = past[j] + load(dh_row[j]) + load(dy_row[j]), s = math::tanh(cell[j]);
        const C dcj = dcell[j] + d * o * (1 - s * s);
        dg[j] = static_cast<T>(dcj * m * i * (1 - i));
        dg[width + j] = static_cast<T>(dcj * old[j] * f * (1 - f));
        dg[2 * width + j] = static_cast<T>(dcj * i * (1 - m * m));
        dg[3 * width + j] = static_cast<T>(d * s * o * (1 - o));
        dcell[j] = dcj * f;
        past[j] = 0;
      }
    });
  });
}

void gru_cell(const Tensor& gates_h, const Tensor& h_before, const Tensor& lengths, int64_t t, Tensor& gates,
              Tensor& hidden, Tensor& h, Tensor& y) {
  const int64_t width = h.sizes()[1];
  const Ended ended(lengths, t);
  dispatch_floating("gru", gates.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    T *const all_gates = gates.data<T>(), *const all_hidden = hidden.data<T>();
    T *const all_h = h.data<T>(), *const all_y = data_or_null<T>(y);
    const T *const parts = gates_h.data<T>(), *const h_old = h_before.data<T>();
    each_row(h, [&](int64_t n) {
      const int64_t row = n * width;
      T* const out = all_y ? all_y + row : nullptr;
      if (ended(n)) return keep(width, h_old + row, all_h + row, out);
      T *const g = all_gates + 3 * row, *const to_hidden = all_hidden + row, *const to_h = all_h + row;
      const T *const p = parts + 3 * row, *const old = h_old + row;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        const C r = math::sigmoid(load(g[j]) + load(p[j]));
        const C z = math::sigmoid(load(g[width + j]) + load(p[width + j]));
        const C share = load(p[2 * width + j]);
        const C m = math::tanh(load(g[2 * width + j]) + r * share);
        g[j] = static_cast<T>(r);
        g[width + j] = static_cast<T>(z);
        g[2 * width + j] = static_cast<T>(m);
        to_hidden[j] = static_cast<T>(share);
        to_h[j] = static_cast<T>((1 - z) * m + z * load(old[j]));
      }
      if (out) std::copy_n(to_h, width, out);
    });
  });
}

void gru_cell_grad(const Tensor& dy, const Tensor& dh, const Tensor& gates, const Tensor& hidden,
                   const Tensor& h_before, const Tensor& lengths, int64_t t, Tensor& dgates, Tensor& dgates_h,
                   Tensor& carry) {
  const int64_t width = carry.sizes()[1];
  const Ended ended(lengths, t);
  dispatch_floating("gru", gates.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const Rows<T> from_output(dy, width), from_next(dh, width);
    T *const to_x = dgates.data<T>(), *const to_h = dgates_h.data<T>();
    C* const all_carry = carry.data<C>();
    const T *const all_gates = gates.data<T>(), *const all_hidden = hidden.data<T>(), *const h_old = h_before.data<T>();
    each_row(carry, [&](int64_t n) {
      const int64_t row = n * width;
      T *const dx = to_x + 3 * row, *const dp = to_h + 3 * row;
      const T *const dy_row = from_output[n], *const dh_row = from_next[n];
      C* const past = all_carry + row;
      if (ended(n)) {
        std::fill_n(dx, 3 * width, T(0));
        std::fill_n(dp, 3 * width, T(0));
        return pass(width, dh_row, past);
      }
      const T *const g = all_gates + 3 * row, *const share = all_hidden + row, *const old = h_old + row;
#pragma GCC ivdep
      for (int64_t j = 0; j < width; ++j) {
        const C r = load(g[j]), z = load(g[width + j]), m = load(g[2 * width + j]);
        const C d = past[j] + load(dh_row[j]) + load(dy_row[j]);
        const C dm = d * (1 - z) * (1 - m * m);
        const C dr = dm * load(share[j]) * r * (1 - r), dz = d * (load(old[j]) - m) * z * (1 - z);
        dx[j] = dp[j] = static_cast<T>(dr);
        dx[width + j] = dp[width + j] = static_cast<T>(dz);
        dx[2 * width + j] = static_cast<T>(dm);
        dp[2 * width + j] = static_cast<T>(dm * r);
        past[j] = d * z;
      }
    });
  });
}

}  // namespace weft::cpu_kernels
