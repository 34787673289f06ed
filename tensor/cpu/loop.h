// The one loop nest behind elementwise kernels: dimensions sorted and merged so that the innermost is as long and as
// dense as the strides allow, cut into pieces for the threads, and run by a body that sees pointers and strides.
#pragma once

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "tensor/tensor.h"
#include "tensor/threads.h"

namespace weft::cpu_kernels {

/// Elements below which a loop stays on one thread.
inline constexpr int64_t kGrain = 16384;

/// N operands of the same sizes; operand 0 is the output, whose memory order is followed.
template <size_t N>
struct Loop {
  int64_t ndim = 1;
  int64_t numel = 0;
  std::array<int64_t, kMaxDims> sizes{};                   // innermost first
  std::array<std::array<int64_t, kMaxDims>, N> strides{};  // in elements
  std::array<const Tensor*, N> operands{};

  explicit Loop(std::array<const Tensor*, N> tensors) : numel(tensors[0]->numel()), operands(tensors) {
    if (std::ranges::all_of(tensors, [](const Tensor* t) { return t->is_contiguous(); })) {
      sizes[0] = numel;
      for (auto& s : strides) s[0] = 1;
      return;
    }
    sort_and_merge();
  }

  /// body(n, offsets, strides): n elements of the innermost dimension, each operand starting at its offset.
  template <class Body>
  void run(const Body& body, int64_t grain = kGrain) const {
    parallel_for(numel, grain, [&](int64_t begin, int64_t end) { run_range(begin, end, body); });
  }

 private:
  void sort_and_merge() {
    const Tensor& out = *operands[0];
    ndim = 0;
    for (int64_t d : by_rising_stride(out.strides())) {
      if (out.sizes()[d] == 1) continue;
      bool merges = ndim > 0;
      for (size_t i = 0; i < N && merges; ++i)
        merges = operands[i]->strides()[d] ==
                 strides[i][static_cast<size_t>(ndim - 1)] * sizes[static_cast<size_t>(ndim - 1)];
      if (merges) {
        sizes[static_cast<size_t>(ndim - 1)] *= out.sizes()[d];
        continue;
      }
      sizes[static_cast<size_t>(ndim)] = out.sizes()[d];
      for (size_t i = 0; i < N; ++i) strides[i][static_cast<size_t>(ndim)] = operands[i]->strides()[d];
      ++ndim;
    }
    if (ndim == 0) {  // one element
      ndim = 1;
      sizes[0] = numel;
    }
  }

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

/// out[i] = f(in[i]…): elements are loaded in their compute type, f's result is converted to TOut. Inner loops with
/// unit strides, or with one operand standing still, are the ones that become vector code.
template <class TOut, class... TIn, class F, class... In>
void map(const F& f, const Tensor& out, const In&... in) {
  static_assert(sizeof...(TIn) == sizeof...(In));
  constexpr size_t N = sizeof...(In) + 1;
  const Loop<N> loop({&out, &in...});
  TOut* const y = out.data<TOut>();
  const std::tuple<const TIn*...> x{in.template data<TIn>()...};

  auto body = [&]<size_t... I>(std::index_sequence<I...>, int64_t n, const std::array<int64_t, N>& at,
                               const std::array<int64_t, N>& step) {
    TOut* const o = y + at[0];
    const std::tuple<const TIn*...> p{std::get<I>(x) + at[I + 1]...};
    if (step[0] == 1 && ((step[I + 1] == 1) && ...)) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) o[i] = static_cast<TOut>(f(load(std::get<I>(p)[i])...));
      return;
    }
    if constexpr (N == 3) {
      if (step[0] == 1 && step[1] == 1 && step[2] == 0) {
        const auto b = load(*std::get<1>(p));
        const auto* const a = std::get<0>(p);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = static_cast<TOut>(f(load(a[i]), b));
        return;
      }
      if (step[0] == 1 && step[1] == 0 && step[2] == 1) {
        const auto a = load(*std::get<0>(p));
        const auto* const b = std::get<1>(p);
#pragma GCC ivdep
        for (int64_t i = 0; i < n; ++i) o[i] = static_cast<TOut>(f(a, load(b[i])));
        return;
      }
    }
    for (int64_t i = 0; i < n; ++i) o[i * step[0]] = static_cast<TOut>(f(load(std::get<I>(p)[i * step[I + 1]])...));
  };
  loop.run([&](int64_t n, const std::array<int64_t, N>& at, const std::array<int64_t, N>& step) {
    body(std::index_sequence_for<In...>{}, n, at, step);
  });
}

}  // namespace weft::cpu_kernels
