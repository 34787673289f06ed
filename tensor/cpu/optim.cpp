// Optimizer steps, norm and scaling over lists of tensors: one pass over memory, and one team of threads for the whole
// list. Elements are independent of each other, and sums have fixed pieces, so nothing depends on the number of
// threads.
#include <vector>

#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"
#include "tensor/optim_updates.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

/// body(k, begin, end): elements [begin, end) of tensor k; the list counts as one range that the threads share.
template <class Body>
void over_list(std::span<const Tensor> list, const Body& body) {
  std::vector<int64_t> starts(list.size() + 1, 0);
  for (size_t k = 0; k < list.size(); ++k) starts[k + 1] = starts[k] + list[k].numel();
  parallel_for(starts.back(), kGrain, [&](int64_t begin, int64_t end) {
    size_t k = static_cast<size_t>(std::ranges::upper_bound(starts, begin) - starts.begin()) - 1;
    for (; begin < end; ++k) {
      const int64_t stop = std::min(end, starts[k + 1]);
      if (begin < stop) body(k, begin - starts[k], stop - starts[k]);
      begin = std::max(begin, stop);
    }
  });
}

template <class T>
std::vector<T*> pointers(std::span<const Tensor> list) {
  std::vector<T*> out;
  for (const Tensor& x : list) out.push_back(x.data<T>());
  return out;
}

template <class F>
void dispatch_16bit(DType t, const F& f) {
  if (t == bf16) return f.template operator()<BFloat16>();
  WEFT_ASSERT(t == f16);
  f.template operator()<Float16>();
}

/// Where no copy is kept.
struct NoCopy {};

template <class T, class F, class Copy, class... S>
void run(F f, int64_t n, T* __restrict p, const T* __restrict g, [[maybe_unused]] Copy* __restrict copy,
         S* __restrict... state) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const compute_t<T> value = f(load(p[i]), load(g[i]), state[i]...);
    p[i] = static_cast<T>(value);
    if constexpr (!std::is_same_v<Copy, NoCopy>) copy[i] = static_cast<Copy>(value);
  }
}

/// p = f(p, g, state&…) for every element of every parameter.
template <class T, class Copy, class F, class... Lists>
void update_with(const F& f, std::span<const Tensor> params, std::span<const Tensor> grads,
                 const std::vector<Copy*>& copies, const Lists&... states) {
  const auto p = pointers<T>(params), g = pointers<T>(grads);
  const std::array<std::vector<compute_t<T>*>, sizeof...(Lists)> s{pointers<compute_t<T>>(states)...};
  WEFT_ASSERT(g.size() == p.size() && copies.size() == p.size() && ((states.size() == p.size()) && ...));
  over_list(
      params, [&]<size_t... I>(std::index_sequence<I...>) {
        return [&](size_t k, int64_t begin, int64_t end) {
          Copy* const copy = std::is_same_v<Copy, NoCopy> ? nullptr : copies[k] + begin;
          run(f, end - begin, p[k] + begin, static_cast<const T*>(g[k] + begin), copy, s[I][k] + begin...);
        };
      }(std::index_sequence_for<Lists...>{}));
}

template <class T, class F, class... Lists>
void update(F f, std::span<const Tensor> params, std::span<const Tensor> grads, const updates::Extras& extras,
            const Lists&... states) {
  if constexpr (requires { f.clip; })
    if (extras.squared_norm.defined())
      f.clip = static_cast<compute_t<T>>(
          updates::clip_factor(*extras.squared_norm.template data<double>(), extras.max_norm));
  if constexpr (std::is_same_v<T, float>)
    if (!extras.copies.empty())
      return dispatch_16bit(extras.copies.front().dtype(), [&]<class Copy>() {
        update_with<T>(f, params, grads, pointers<Copy>(extras.copies), states...);
      });
  WEFT_ASSERT(extras.copies.empty());
  update_with<T>(f, params, grads, std::vector<NoCopy*>(params.size()), states...);
}

/// Sum of squares in double: 32 partial sums, so that it becomes vector code.
template <class T>
double sum_of_squares(const T* x, int64_t n) {
  constexpr int64_t kLanes = 32;
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) {
      const double v = load(x[i + j]);
      lane[j] += v * v;
    }
  for (int64_t j = 0; i < n; ++i, ++j) {
    const double v = load(x[i]);
    lane[j] += v * v;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lane[j] += lane[j + half];
  return lane[0];
}

}  // namespace

#include "tensor/optim_steps.def"

void squared_norm(std::span<const Tensor> list, Tensor& out) {
  struct Piece {
    size_t tensor;
    int64_t begin;
  };
  std::vector<Piece> pieces;
  for (size_t k = 0; k < list.size(); ++k) {
    WEFT_CHECK(is_floating(list[k].dtype()), "squared_norm", "wants floating tensors, got {}", name(list[k].dtype()));
    for (int64_t begin = 0; begin < list[k].numel(); begin += kGrain) pieces.push_back({k, begin});
  }
  std::vector<double> sums(pieces.size());
  parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const Tensor& x = list[pieces[i].tensor];
      dispatch_floating("squared_norm", x.dtype(), [&]<class T>() {
        sums[i] = sum_of_squares(x.data<T>() + pieces[i].begin, std::min(kGrain, x.numel() - pieces[i].begin));
      });
    }
  });
  double total = 0;
  for (double s : sums) total += s;
  *out.data<double>() = total;
}

void scale(std::span<const Tensor> list, double factor) {
  for (const Tensor& x : list)
    WEFT_CHECK(is_floating(x.dtype()), "scale", "wants floating tensors, got {}", name(x.dtype()));
  over_list(list, [&](size_t k, int64_t begin, int64_t end) {
    dispatch_floating("scale", list[k].dtype(), [&]<class T>() {
      const auto f = static_cast<compute_t<T>>(factor);
      T* const x = list[k].data<T>() + begin;
#pragma GCC ivdep
      for (int64_t i = 0; i < end - begin; ++i) x[i] = static_cast<T>(load(x[i]) * f);
    });
  });
}

void clip_scale(std::span<const Tensor> list, const Tensor& squared_norm, double max_norm) {
  const double factor = updates::clip_factor(*squared_norm.data<double>(), max_norm);
  if (factor < 1) scale(list, factor);
}

}  // namespace weft::cpu_kernels
