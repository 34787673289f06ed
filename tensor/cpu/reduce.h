// The one loop nest behind reductions on the CPU: rows are summed in vector lanes, columns in blocks. Long reductions
// are cut into chunks of a fixed size whose results are joined in order, so that no result depends on the number of
// threads.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <vector>

#include "tensor/cpu/loop.h"
#include "tensor/cpu/rows.h"
#include "tensor/reduce_plan.h"

namespace weft::cpu_kernels {

/// Elements of a chunk where one output's reduction is shared between threads.
inline constexpr int64_t kReduceChunk = 32768;
/// Outputs from which on each is reduced by one thread as a whole.
inline constexpr int64_t kEnoughOutputs = 32;

/// An odometer over dimensions [first, used).
class ReduceWalk {
 public:
  ReduceWalk(const ReduceDims& dims, size_t first, int64_t flat) : dims_(dims), first_(first) {
    if (flat == 0) return;
    for (size_t k = first; k < dims.used; ++k) {
      const ReduceDim& d = dims.dim[k];
      index_[k] = flat % d.size;
      flat /= d.size;
      x += index_[k] * d.x;
      out += index_[k] * d.out;
    }
  }
  /// n steps of the first dimension, which has at least that many left.
  void advance(int64_t n) {
    if (first_ >= dims_.used) return;
    const ReduceDim& inner = dims_.dim[first_];
    index_[first_] += n;
    x += n * inner.x;
    out += n * inner.out;
    for (size_t k = first_; index_[k] == dims_.dim[k].size && k + 1 < dims_.used; ++k) {
      const ReduceDim &d = dims_.dim[k], &next = dims_.dim[k + 1];
      x += next.x - d.size * d.x;
      out += next.out - d.size * d.out;
      index_[k] = 0;
      ++index_[k + 1];
    }
  }
  /// Steps left in the first dimension.
  int64_t left() const { return first_ < dims_.used ? dims_.dim[first_].size - index_[first_] : 1; }
  /// Stride of x along the first dimension.
  int64_t step() const { return first_ < dims_.used ? dims_.dim[first_].x : 0; }

  int64_t x = 0, out = 0;

 private:
  const ReduceDims& dims_;
  size_t first_;
  std::array<int64_t, kMaxDims> index_{};
};

/// Where results go: `value` for all, `second` for policies that have two (the mean beside the variance), of the same
/// strides, or undefined.
struct ReduceOutputs {
  Tensor& value;
  const Tensor* second = nullptr;
};

template <class A>
[[gnu::noinline]] void store_result(const Tensor& out, int64_t at, A result) {
  dispatch(out.dtype(), [&]<class T>() { out.data<T>()[at] = static_cast<T>(static_cast<compute_t<T>>(result)); });
}

// A policy says what is accumulated: two accumulators of type A (the second may stay unused), and
//   A first(), A second()                     their start
//   void add(A& a, A& b, V x, A shift)        one element
//   void merge(A& a, A& b, A c, A d)          another part
//   A value(A a, A b, A shift, int64_t n)     the result, and for kSecond a second one
// kPlainSum: elements are just added up, so floats may be summed in pieces of a few before they meet `a`.
// kShift: `shift` is the first element of the output's set, so that squares around it do not cancel.
template <class A_>
struct ReducePolicy {
  using A = A_;
  static constexpr bool kPlainSum = false, kShift = false, kSecond = false;
  A first() const { return A(0); }
  A second() const { return A(0); }
};

template <class P>
void store_results(const P& policy, const ReduceOutputs& to, int64_t at, typename P::A a, typename P::A b,
                   typename P::A shift, int64_t n) {
  store_result(to.value, at, policy.value(a, b, shift, n));
  if constexpr (P::kSecond)
    if (to.second && to.second->defined()) store_result(*to.second, at, policy.second_value(a, b, shift, n));
}

namespace detail {

/// Accumulators side by side, so that the loop over them becomes vector code.
template <class P>
struct Lanes {
  static constexpr int64_t kLanes = 32;
  using A = typename P::A;
  A a[kLanes], b[kLanes];

  explicit Lanes(const P& p) {
    for (int64_t l = 0; l < kLanes; ++l) {
      a[l] = p.first();
      b[l] = p.second();
    }
  }
  template <class T>
  void add(const P& p, const T* x, int64_t n, int64_t step, A shift) {
    int64_t i = 0;
    if (step == 1) {
      for (; i + kLanes <= n; i += kLanes)
        for (int64_t l = 0; l < kLanes; ++l) p.add(a[l], b[l], load(x[i + l]), shift);
    }
    for (int64_t l = 0; i < n; ++i, l = (l + 1) % kLanes) p.add(a[l], b[l], load(x[i * step]), shift);
  }
  void fold(const P& p, A& to_a, A& to_b) {
    for (int64_t width = kLanes / 2; width > 0; width /= 2)
      for (int64_t l = 0; l < width; ++l) p.merge(a[l], b[l], a[l + width], b[l + width]);
    p.merge(to_a, to_b, a[0], b[0]);
  }
};

/// Elements [begin, end) of the reduced dimensions into (a, b).
template <class T, class P>
void reduce_range(const P& p, const ReduceDims& reduced, const T* x, int64_t begin, int64_t end, typename P::A shift,
                  typename P::A& a, typename P::A& b) {
  ReduceWalk walk(reduced, 0, begin);
  if constexpr (P::kPlainSum && std::is_same_v<compute_t<T>, float>) {
    if (walk.step() == 1) {
      for (int64_t n; begin < end; begin += n, walk.advance(n)) {
        n = std::min(walk.left(), end - begin);
        a += row_sum<float>(n, [from = x + walk.x](int64_t i) { return load(from[i]); });
      }
      return;
    }
  }
  if (end - begin < Lanes<P>::kLanes) {
    for (int64_t n; begin < end; begin += n, walk.advance(n)) {
      n = std::min(walk.left(), end - begin);
      const T* from = x + walk.x;
      for (int64_t i = 0; i < n; ++i) p.add(a, b, load(from[i * walk.step()]), shift);
    }
    return;
  }
  Lanes<P> lanes(p);
  for (int64_t n; begin < end; begin += n, walk.advance(n)) {
    n = std::min(walk.left(), end - begin);
    lanes.add(p, x + walk.x, n, walk.step(), shift);
  }
  lanes.fold(p, a, b);
}

template <class T, class P>
void reduce_rows(const P& p, const ReducePlan& plan, const T* x, const ReduceOutputs& to) {
  using A = typename P::A;
  const int64_t outputs = plan.kept.numel, count = plan.reduced.numel;
  const int64_t splits =
      outputs < kEnoughOutputs && count >= 2 * kReduceChunk ? (count + kReduceChunk - 1) / kReduceChunk : 1;
  const int64_t chunk = splits == 1 ? count : kReduceChunk;
  std::vector<std::array<A, 2>> parts(splits == 1 ? 0 : static_cast<size_t>(outputs * splits));
  parallel_for(outputs * splits, std::max<int64_t>(1, kGrain / std::max<int64_t>(chunk, 1)),
               [&](int64_t begin, int64_t end) {
                 ReduceWalk walk(plan.kept, 0, begin / splits);
                 for (int64_t task = begin; task < end; ++task) {
                   const int64_t s = task % splits;
                   A a = p.first(), b = p.second(), shift{};
                   if constexpr (P::kShift)
                     if (count > 0) shift = static_cast<A>(load(x[walk.x]));
                   reduce_range(p, plan.reduced, x + walk.x, s * chunk, std::min(count, (s + 1) * chunk), shift, a, b);
                   if (splits == 1)
                     store_results(p, to, walk.out, a, b, shift, count);
                   else
                     parts[static_cast<size_t>(task)] = {a, b};
                   if (s == splits - 1) walk.advance(1);
                 }
               });
  if (splits == 1) return;
  ReduceWalk walk(plan.kept, 0, 0);
  for (int64_t o = 0; o < outputs; ++o, walk.advance(1)) {
    A a = p.first(), b = p.second(), shift{};
    if constexpr (P::kShift) shift = static_cast<A>(load(x[walk.x]));
    for (int64_t s = 0; s < splits; ++s) {
      const auto& part = parts[static_cast<size_t>(o * splits + s)];
      p.merge(a, b, part[0], part[1]);
    }
    store_results(p, to, walk.out, a, b, shift, count);
  }
}

/// A block of columns and their accumulators.
template <class P>
struct ColumnBlock {
  static constexpr int64_t kWidth = 256;
  using A = typename P::A;
  int64_t width;
  A a[kWidth], b[kWidth], shift[kWidth];

  template <class T>
  ColumnBlock(const P& p, const T* x, int64_t columns, int64_t step, bool any) : width(columns) {
    for (int64_t c = 0; c < width; ++c) {
      a[c] = p.first();
      b[c] = p.second();
      shift[c] = A{};
      if constexpr (P::kShift)
        if (any) shift[c] = static_cast<A>(load(x[c * step]));
    }
  }

  template <class T>
  void add(const P& p, const T* x, int64_t rows, int64_t row_step, int64_t step) {
    if (step == 1 && row_step == width && width <= 32) return add_narrow(p, x, rows);
    int64_t r = 0;
    if constexpr (P::kPlainSum && std::is_same_v<compute_t<T>, float>) {
      for (; step == 1 && r + 8 <= rows; r += 8) {
        const T* const from = x + r * row_step;
        auto at = [=](int64_t k, int64_t c) { return load(from[k * row_step + c]); };
#pragma GCC ivdep
        for (int64_t c = 0; c < width; ++c)
          a[c] += static_cast<A>(((at(0, c) + at(1, c)) + (at(2, c) + at(3, c))) +
                                 ((at(4, c) + at(5, c)) + (at(6, c) + at(7, c))));
      }
    }
    if (step == 1) {
      for (; r + 4 <= rows; r += 4) {
        const T *x0 = x + r * row_step, *x1 = x0 + row_step, *x2 = x1 + row_step, *x3 = x2 + row_step;
#pragma GCC ivdep
        for (int64_t c = 0; c < width; ++c) {
          A u = a[c], v = b[c];
          p.add(u, v, load(x0[c]), shift[c]);
          p.add(u, v, load(x1[c]), shift[c]);
          p.add(u, v, load(x2[c]), shift[c]);
          p.add(u, v, load(x3[c]), shift[c]);
          a[c] = u;
          b[c] = v;
        }
      }
    }
    for (; r < rows; ++r)
      for (int64_t c = 0; c < width; ++c) p.add(a[c], b[c], load(x[r * row_step + c * step]), shift[c]);
  }

  /// Few columns without gaps: several rows are taken as one.
  template <class T>
  void add_narrow(const P& p, const T* x, int64_t rows) {
    const int64_t group = 64 / width, lanes = group * width;
    A u[64], v[64], s[64];
    for (int64_t l = 0; l < lanes; ++l) {
      u[l] = p.first();
      v[l] = p.second();
      s[l] = shift[l % width];
    }
    int64_t r = 0;
    for (; r + group <= rows; r += group, x += lanes) {
#pragma GCC ivdep
      for (int64_t l = 0; l < lanes; ++l) p.add(u[l], v[l], load(x[l]), s[l]);
    }
    for (int64_t l = 0; l < (rows - r) * width; ++l) p.add(u[l], v[l], load(x[l]), s[l]);
    for (int64_t l = 0; l < lanes; ++l) p.merge(a[l % width], b[l % width], u[l], v[l]);
  }
};

template <class T, class P>
void reduce_columns(const P& p, const ReducePlan& plan, const T* x, const ReduceOutputs& to) {
  using A = typename P::A;
  using Block = ColumnBlock<P>;
  const ReduceDim& inner = plan.kept.dim[0];
  const int64_t widest = std::min(inner.size, Block::kWidth), blocks = (inner.size + Block::kWidth - 1) / Block::kWidth;
  const int64_t tasks = plan.kept.numel / inner.size * blocks, count = plan.reduced.numel;
  const int64_t rows = std::max<int64_t>(1, kReduceChunk / widest);
  const int64_t splits = tasks < kEnoughOutputs && count >= 2 * rows ? (count + rows - 1) / rows : 1;
  const int64_t chunk = splits == 1 ? count : rows;
  std::vector<A> parts(splits == 1 ? 0 : static_cast<size_t>(tasks * splits * 2 * widest));

  struct Place {
    int64_t x, out, width;
  };
  auto place = [&](int64_t task) {
    const ReduceWalk outer(plan.kept, 1, task / blocks);
    const int64_t c = task % blocks * Block::kWidth;
    return Place{outer.x + c * inner.x, outer.out + c * inner.out, std::min(Block::kWidth, inner.size - c)};
  };
  auto store = [&](const Block& block, const Place& at) {
    for (int64_t c = 0; c < block.width; ++c)
      store_results(p, to, at.out + c * inner.out, block.a[c], block.b[c], block.shift[c], count);
  };
  parallel_for(tasks * splits, std::max<int64_t>(1, kGrain / std::max<int64_t>(chunk * widest, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const Place at = place(i / splits);
                   Block block(p, x + at.x, at.width, inner.x, count > 0);
                   const int64_t last = std::min(count, (i % splits + 1) * chunk);
                   int64_t row = i % splits * chunk;
                   ReduceWalk walk(plan.reduced, 0, row);
                   for (int64_t n; row < last; row += n, walk.advance(n)) {
                     n = std::min(walk.left(), last - row);
                     block.add(p, x + at.x + walk.x, n, walk.step(), inner.x);
                   }
                   if (splits == 1) {
                     store(block, at);
                   } else {
                     A* part = parts.data() + i * 2 * widest;
                     std::copy_n(block.a, block.width, part);
                     std::copy_n(block.b, block.width, part + widest);
                   }
                 }
               });
  if (splits == 1) return;
  for (int64_t task = 0; task < tasks; ++task) {
    const Place at = place(task);
    Block block(p, x + at.x, at.width, inner.x, true);
    for (int64_t s = 0; s < splits; ++s) {
      const A* part = parts.data() + (task * splits + s) * 2 * widest;
      for (int64_t c = 0; c < block.width; ++c) p.merge(block.a[c], block.b[c], part[c], part[widest + c]);
    }
    store(block, at);
  }
}

}  // namespace detail

/// Reduces x, of element type T, into outputs that have 1 for every reduced dimension.
template <class T, class P>
void reduce(const P& policy, const Tensor& x, const ReduceOutputs& to) {
  if (to.value.numel() == 0) return;
  const ReducePlan plan(x, to.value);
  if (plan.columns)
    detail::reduce_columns(policy, plan, x.data<T>(), to);
  else
    detail::reduce_rows(policy, plan, x.data<T>(), to);
}

}  // namespace weft::cpu_kernels
