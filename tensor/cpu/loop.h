// Elementwise loops of the CPU: the loop nest, cut into pieces for the threads, and run by a body that sees pointers
// and strides.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "tensor/loop_nest.h"
#include "tensor/threads.h"

namespace weft::cpu_kernels {

/// Elements below which a loop stays on one thread.
inline constexpr int64_t kGrain = 16384;

/// The loop nest over N operands; operand 0 is the output.
template <size_t N>
struct Loop : LoopNest<N> {
  std::array<const Tensor*, N> operands{};

  explicit Loop(std::array<const Tensor*, N> tensors) : LoopNest<N>(tensors), operands(tensors) {}

  /// body(n, offsets, strides): n elements of the innermost dimension, each operand starting at its offset.
  template <class Body>
  void run(const Body& body, int64_t grain = kGrain) const {
    parallel_for(numel, grain, [&](int64_t begin, int64_t end) { run_range(begin, end, body); });
  }

  using LoopNest<N>::ndim, LoopNest<N>::numel, LoopNest<N>::sizes, LoopNest<N>::strides;

 private:
  template <class Body>
  void run_range(int64_t begin, int64_t end, const Body& body) const {
    std::array<int64_t, N> step{}, offset{};
    for (size_t i = 0; i < N; ++i) step[i] = strides[i][0];
    std::array<int64_t, kMaxDims> index{};
    for (int64_t d = 0, rest = begin; d < ndim; ++d) {
      const auto k = static_cast<size_t>(d);
      index[k] = rest % sizes[k];
      rest /= sizes[k];
      for (size_t i = 0; i < N; ++i) offset[i] += index[k] * strides[i][k];
    }
    while (begin < end) {
      const int64_t n = std::min(sizes[0] - index[0], end - begin);
      body(n, offset, step);
      begin += n;
      index[0] += n;
      for (size_t i = 0; i < N; ++i) offset[i] += n * step[i];
      for (size_t k = 0; index[k] == sizes[k] && static_cast<int64_t>(k) + 1 < ndim; ++k) {
        for (size_t i = 0; i < N; ++i) offset[i] += strides[i][k + 1] - sizes[k] * strides[i][k];
        index[k] = 0;
        ++index[k + 1];
      }
    }
  }
};

template <class T>
compute_t<T> load(const T& x) {
  return static_cast<compute_t<T>>(x);
}

/// One functor over n dense elements: out[i] = f(in[0][i]…). Where `still` is not negative, that operand is one value.
using RunFunction = void(const void* functor, int64_t n, int still, void* out, const void* const* in);

/// The body of `map`, compiled once for all functors. `still_runs`: `run` can do without a copy of an operand that
/// stands still.
template <size_t N>
void map_runs(const std::array<const Tensor*, N>& operands, const void* functor, RunFunction* run, bool still_runs);
extern template void map_runs<2>(const std::array<const Tensor*, 2>&, const void*, RunFunction*, bool);
extern template void map_runs<3>(const std::array<const Tensor*, 3>&, const void*, RunFunction*, bool);
extern template void map_runs<4>(const std::array<const Tensor*, 4>&, const void*, RunFunction*, bool);

/// Truth values are read as bytes: loops over bool do not become vector code.
template <class T>
T element(const T* x, int64_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return reinterpret_cast<const unsigned char*>(x)[i] != 0;
  else
    return x[i];
}

/// Two f32 operands, what training does most: an operand that stands still stays in a register.
template <class Out, class... In>
inline constexpr bool kStillRuns = std::is_same_v<std::tuple<Out, In...>, std::tuple<float, float, float>>;

template <class F, class Out, class... In>
void run_functor(const void* functor, int64_t n, [[maybe_unused]] int still, void* out, const void* const* in) {
  const F f = *static_cast<const F*>(functor);
  Out* const o = static_cast<Out*>(out);
  [&]<size_t... I>(std::index_sequence<I...>) {
    const std::tuple<const In*...> p{static_cast<const In*>(in[I])...};
    if constexpr (kStillRuns<Out, In...>) {
      const auto [a, b] = p;
      if (still == 0) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = f(a[0], b[i]);
        return;
      }
      if (still == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = f(a[i], b[0]);
        return;
      }
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) o[i] = static_cast<Out>(f(element(std::get<I>(p), i)...));
  }
  (std::index_sequence_for<In...>{});
}

/// out[i] = f(in[i]…): elements are loaded in their compute type, f's result is converted to TOut. Dense operands of
/// their compute type are read and written where they lie; others pass through short dense buffers, so that a functor
/// is compiled for dense runs only.
template <class TOut, class... TIn, class F, class... In>
void map(const F& f, const Tensor& out, const In&... in) {
  static_assert(sizeof...(TIn) == sizeof...(In));
  WEFT_ASSERT(out.dtype() == dtype_of<TOut>::value && ((in.dtype() == dtype_of<TIn>::value) && ...));
  map_runs<sizeof...(In) + 1>({&out, &in...}, &f, &run_functor<F, compute_t<TOut>, compute_t<TIn>...>,
                              kStillRuns<TOut, TIn...>);
}

}  // namespace weft::cpu_kernels
