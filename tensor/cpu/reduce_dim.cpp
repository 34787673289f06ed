// Operations along one dimension of [outer, n, inner]: extremes with their index, running sums.
#include <algorithm>
#include <vector>

#include "tensor/along.h"
#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

constexpr int64_t kBlock = 256;       // columns taken at once
constexpr int64_t kRowChunk = 32768;  // of a long row, for one thread

template <class V>
struct Best {
  V value{};
  int64_t index = -1;
};

/// True where x takes the place of v, which came before it: NaN beats all numbers, nothing beats NaN, equals stay.
template <bool largest, class V>
bool beats(V x, V v) {
  return (largest ? !(x <= v) : !(x >= v)) && v == v;
}

/// The better of two, NaN above all; in these words loops over it become vector code.
template <bool largest, class V>
V better(V a, V b) {
  return (largest ? a > b : a < b) || a != a ? a : b;
}

/// The best value of x[begin, end).
template <bool largest, class T>
compute_t<T> best_value(const T* x, int64_t begin, int64_t end) {
  using V = compute_t<T>;
  constexpr int64_t kLanes = 64;
  V best = load(x[begin]);
  int64_t i = begin;
  if (end - begin >= kLanes) {
    V lane[kLanes];
    for (int64_t l = 0; l < kLanes; ++l) lane[l] = load(x[i + l]);
    for (i += kLanes; i + kLanes <= end; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) lane[l] = better<largest>(load(x[i + l]), lane[l]);
    if (i < end)  // the last ones once more
      for (int64_t l = 0; l < kLanes; ++l) lane[l] = better<largest>(load(x[end - kLanes + l]), lane[l]);
    i = end;
    for (int64_t width = kLanes / 2; width > 0; width /= 2)
      for (int64_t l = 0; l < width; ++l) lane[l] = better<largest>(lane[l], lane[l + width]);
    best = lane[0];
  }
  for (; i < end; ++i) best = better<largest>(load(x[i]), best);
  return best;
}

/// Where `value` first is in x[begin, end), which has it; any NaN stands for a NaN.
template <class T>
int64_t place_of(const T* x, int64_t begin, int64_t end, compute_t<T> value) {
  constexpr int64_t kStep = 32;
  const bool nan = value != value;
  int64_t i = begin;
  for (; i + kStep <= end; i += kStep) {
    int hits = 0;
    for (int64_t l = 0; l < kStep; ++l) {
      const auto v = load(x[i + l]);
      hits += nan ? v != v : v == value;
    }
    if (hits > 0) break;
  }
  while (nan ? load(x[i]) == load(x[i]) : load(x[i]) != value) ++i;
  return i;
}

/// The first best of x[begin, end), block by block; a block is searched only where its best beats what came before.
template <bool largest, class T>
Best<compute_t<T>> best_of(const T* x, int64_t begin, int64_t end) {
  constexpr int64_t kSearched = 2048;
  Best<compute_t<T>> best{load(x[begin]), begin};
  for (int64_t i = begin; i < end; i += kSearched) {
    const int64_t stop = std::min(end, i + kSearched);
    const auto value = best_value<largest>(x, i, stop);
    if (!beats<largest>(value, best.value)) continue;
    const int64_t at = place_of(x, i, stop, value);
    best = {load(x[at]), at};
  }
  return best;
}

template <bool largest, class T>
void extreme_rows(const Along& a, const T* x, T* values, int64_t* indices) {
  using V = compute_t<T>;
  const int64_t splits = a.outer < 32 ? (a.n + kRowChunk - 1) / kRowChunk : 1, chunk = splits == 1 ? a.n : kRowChunk;
  std::vector<Best<V>> parts(splits == 1 ? 0 : static_cast<size_t>(a.outer * splits));
  auto store = [&](int64_t row, const Best<V>& best) {
    values[row] = static_cast<T>(best.value);
    indices[row] = best.index;
  };
  parallel_for(a.outer * splits, std::max<int64_t>(1, kGrain / chunk), [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t row = task / splits, first = task % splits * chunk;
      const Best<V> best = best_of<largest>(x + row * a.n, first, std::min(a.n, first + chunk));
      if (splits == 1)
        store(row, best);
      else
        parts[static_cast<size_t>(task)] = best;
    }
  });
  for (int64_t row = 0; splits > 1 && row < a.outer; ++row) {
    Best<V> best = parts[static_cast<size_t>(row * splits)];
    for (int64_t s = 1; s < splits; ++s) {
      const Best<V>& part = parts[static_cast<size_t>(row * splits + s)];
      if (beats<largest>(part.value, best.value)) best = part;
    }
    store(row, best);
  }
}

template <bool largest, class T>
void extreme_columns(const Along& a, const T* x, T* values, int64_t* indices) {
  using V = compute_t<T>;
  const int64_t blocks = (a.inner + kBlock - 1) / kBlock;
  parallel_for(a.outer * blocks, std::max<int64_t>(1, kGrain / (a.n * std::min(a.inner, kBlock))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t first = task % blocks * kBlock, width = std::min(kBlock, a.inner - first),
                                 outer = task / blocks;
                   const T* from = x + outer * a.n * a.inner + first;
                   V best[kBlock];
                   int64_t index[kBlock] = {};
                   for (int64_t c = 0; c < width; ++c) best[c] = load(from[c]);
                   for (int64_t r = 1; r < a.n; ++r) {
                     const T* row = from + r * a.inner;
#pragma GCC ivdep
                     for (int64_t c = 0; c < width; ++c) {
                       const V v = load(row[c]);
                       const bool take = beats<largest>(v, best[c]);
                       best[c] = take ? v : best[c];
                       index[c] = take ? r : index[c];
                     }
                   }
                   for (int64_t c = 0; c < width; ++c) {
                     values[outer * a.inner + first + c] = static_cast<T>(best[c]);
                     indices[outer * a.inner + first + c] = index[c];
                   }
                 }
               });
}

/// Along rows, four elements at a time: only one addition of the four waits for those before.
template <class To, class From>
void running_sum_of_rows(const Along& a, const From* x, To* out, bool reverse) {
  using A = std::conditional_t<FloatingElement<From>, double, int64_t>;
  const int64_t step = reverse ? -1 : 1;
  auto convert = [](A v) { return static_cast<To>(static_cast<compute_t<To>>(v)); };
  parallel_for(a.outer, std::max<int64_t>(1, kGrain / a.n), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t at = row * a.n + (reverse ? a.n - 1 : 0), i = 0;
      A total{};
      for (; i + 4 <= a.n; i += 4, at += 4 * step) {
        const A s0 = static_cast<A>(load(x[at])), s1 = s0 + static_cast<A>(load(x[at + step])),
                s2 = s1 + static_cast<A>(load(x[at + 2 * step])), s3 = s2 + static_cast<A>(load(x[at + 3 * step]));
        out[at] = convert(total + s0);
        out[at + step] = convert(total + s1);
        out[at + 2 * step] = convert(total + s2);
        out[at + 3 * step] = convert(total + s3);
        total += s3;
      }
      for (; i < a.n; ++i, at += step) {
        total += static_cast<A>(load(x[at]));
        out[at] = convert(total);
      }
    }
  });
}

template <class To, class From>
void running_sum(const Along& a, const From* x, To* out, bool reverse) {
  using A = std::conditional_t<FloatingElement<From>, double, int64_t>;
  if (a.inner == 1) return running_sum_of_rows(a, x, out, reverse);
  const int64_t blocks = (a.inner + kBlock - 1) / kBlock;
  parallel_for(a.outer * blocks, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, a.n * std::min(a.inner, kBlock))),
               [&](int64_t begin, int64_t end) {
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t first = task % blocks * kBlock, width = std::min(kBlock, a.inner - first);
                   const int64_t base = task / blocks * a.n * a.inner + first;
                   A total[kBlock] = {};
                   for (int64_t i = 0; i < a.n; ++i) {
                     const int64_t at = base + (reverse ? a.n - 1 - i : i) * a.inner;
                     for (int64_t c = 0; c < width; ++c) {
                       total[c] += static_cast<A>(load(x[at + c]));
                       out[at + c] = static_cast<To>(static_cast<compute_t<To>>(total[c]));
                     }
                   }
                 }
               });
}

}  // namespace

void extreme(const Tensor& x, int64_t dim, bool largest, Tensor& values, Tensor& indices) {
  WEFT_ASSERT(values.is_contiguous() && indices.is_contiguous() && x.sizes()[dim] > 0);
  if (values.numel() == 0) return;
  const Tensor dense = raw::contiguous(x);
  const Along a(dense, dim);
  dispatch(x.dtype(), [&]<class T>() {
    const T* from = dense.data<T>();
    T* v = values.data<T>();
    auto* i = indices.data<int64_t>();
    if (a.inner == 1)
      largest ? extreme_rows<true>(a, from, v, i) : extreme_rows<false>(a, from, v, i);
    else
      largest ? extreme_columns<true>(a, from, v, i) : extreme_columns<false>(a, from, v, i);
  });
}

void extreme_grad(const Tensor& dy, const Tensor& indices, int64_t dim, Tensor& dx) {
  WEFT_ASSERT(dx.is_contiguous() && indices.is_contiguous());
  fill(dx, 0);
  const Tensor dense = raw::contiguous(dy);
  const Along a(dx, dim);
  dispatch_floating("max", dx.dtype(), [&]<class T>() {
    const T* from = dense.data<T>();
    const auto* index = indices.data<int64_t>();
    T* to = dx.data<T>();
    parallel_for(a.outer * a.inner, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[(i / a.inner * a.n + index[i]) * a.inner + i % a.inner] = from[i];
    });
  });
}

void cumsum(const Tensor& x, int64_t dim, bool reverse, Tensor& out) {
  WEFT_ASSERT(out.is_contiguous());
  if (x.numel() == 0) return;
  const Tensor dense = raw::contiguous(x);
  const Along a(dense, dim);
  dispatch(x.dtype(), [&]<class T>() {
    if constexpr (FloatingElement<T>)
      running_sum(a, dense.data<T>(), out.data<T>(), reverse);
    else
      running_sum(a, dense.data<T>(), out.data<int64_t>(), reverse);
  });
}

}  // namespace weft::cpu_kernels
