// Reading and adding by index along one dimension, masks, and the k largest.
#include <atomic>
#include <cmath>

#include "tensor/cpu/row_sums.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

/// x at the first index of `dim`: what is left to loop over when the kernel walks `dim` itself.
Tensor lines_of(const Tensor& x, int64_t dim) { return raw::narrow(x, dim, 0, 1); }

/// A view that stands still along `dim`, with the sizes of `sizes`.
Tensor still_along(const Tensor& x, int64_t dim, const Shape& sizes) {
  Shape strides = x.strides();
  strides[dim] = 0;
  return raw::view(x, sizes, strides, x.offset());
}

}  // namespace

void check_index(const Tensor& index, int64_t size, const char* op, const char* what) {
  const Tensor dense = raw::contiguous(index);
  dispatch_index(op, index.dtype(), [&]<class I>() {
    const I* values = dense.data<I>();
    auto outside = [size](I v) {
      return static_cast<uint64_t>(static_cast<int64_t>(v)) >= static_cast<uint64_t>(size);
    };
    std::atomic<bool> any{false};
    parallel_for(dense.numel(), kGrain, [&](int64_t begin, int64_t end) {
      unsigned bad = 0;
      for (int64_t i = begin; i < end; ++i) bad |= outside(values[i]);
      if (bad) any = true;
    });
    if (!any) return;
    const int64_t at = std::find_if(values, values + dense.numel(), outside) - values;
    fail(op, fmt::format("index {} at position {} is out of range for {} of size {}", values[at],
                         str(position_of(at, index.sizes())), what, size));
  });
}

void gather(const Tensor& x, int64_t dim, const Tensor& index, Tensor& out) {
  if (out.numel() == 0) return;
  const int64_t step = x.strides()[dim];
  const Tensor base = still_along(x, dim, out.sizes());
  const Loop<3> loop({&out, &index, &base});
  dispatch_index("gather", index.dtype(), [&]<class I>() {
    dispatch(x.dtype(), [&]<class T>() {
      const T* const from = base.data<T>();
      const I* const where = index.data<I>();
      T* const to = out.data<T>();
      loop.run([&](int64_t n, const auto& at, const auto& steps) {
        T* const y = to + at[0];
        const I* const k = where + at[1];
        const T* const source = from + at[2];
        if (steps[1] == 0 && steps[0] == 1 && steps[2] == 1) {  // one index for the whole run
          std::copy_n(source + k[0] * step, n, y);
          return;
        }
        if (steps[0] == 1 && steps[1] == 1 && steps[2] == 0 && step == 1) {
#pragma GCC ivdep
          for (int64_t i = 0; i < n; ++i) y[i] = source[k[i]];
          return;
        }
        for (int64_t i = 0; i < n; ++i)
          y[i * steps[0]] = source[i * steps[2] + static_cast<int64_t>(k[i * steps[1]]) * step];
      });
    });
  });
}

namespace {

/// One line of scatter_add: `count` values, the destination `length` long.
struct Line {
  int64_t count, length;
  int64_t source_step, index_step, out_step;
};

template <class T, class I>
void add_line(const Line& line, const T* source, const I* index, T* out) {
  for (int64_t k = 0; k < line.count; ++k) {
    T& y = out[static_cast<int64_t>(index[k * line.index_step]) * line.out_step];
    y = static_cast<T>(load(y) + load(source[k * line.source_step]));
  }
}

/// The same with sums in double, where many values may meet.
template <class T, class I>
void add_line_in_double(const Line& line, const T* source, const I* index, T* out, std::vector<double>& sums) {
  sums.resize(static_cast<size_t>(line.length));
  for (int64_t j = 0; j < line.length; ++j)
    sums[static_cast<size_t>(j)] = static_cast<double>(load(out[j * line.out_step]));
  for (int64_t k = 0; k < line.count; ++k)
    sums[static_cast<size_t>(index[k * line.index_step])] += static_cast<double>(load(source[k * line.source_step]));
  for (int64_t j = 0; j < line.length; ++j)
    out[j * line.out_step] = static_cast<T>(static_cast<compute_t<T>>(sums[static_cast<size_t>(j)]));
}

}  // namespace

void scatter_add(const Tensor& source, int64_t dim, const Tensor& index, Tensor& out) {
  if (source.numel() == 0) return;
  const Tensor source_lines = lines_of(source, dim), index_lines = lines_of(index, dim);
  const Tensor out_lines = still_along(out, dim, source_lines.sizes());
  const Loop<3> loop({&source_lines, &index_lines, &out_lines});
  const Line line{source.sizes()[dim], out.sizes()[dim], source.strides()[dim], index.strides()[dim],
                  out.strides()[dim]};
  dispatch_index("scatter_add", index.dtype(), [&]<class I>() {
    dispatch(out.dtype(), [&]<class T>() {
      const T* const from = source.data<T>();
      const I* const where = index.data<I>();
      T* const to = out.data<T>();
      const bool in_double =
          FloatingElement<T> && !std::is_same_v<T, double> && line.count > (sizeof(T) == 2 ? 1 : 256);
      loop.run(
          [&](int64_t n, const auto& at, const auto& steps) {
            std::vector<double> sums;
            for (int64_t i = 0; i < n; ++i) {
              const T* const s = from + at[0] + i * steps[0];
              const I* const k = where + at[1] + i * steps[1];
              T* const y = to + at[2] + i * steps[2];
              if (in_double)
                add_line_in_double(line, s, k, y, sums);
              else
                add_line(line, s, k, y);
            }
          },
          std::max<int64_t>(1, kGrain / line.count));
    });
  });
}

void index_add(const Tensor& source, int64_t dim, const Tensor& index, Tensor& out) {
  if (source.numel() == 0) return;
  const Tensor from = raw::contiguous(source), where = raw::contiguous(index);
  Tensor to = raw::contiguous(out);
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < out.dim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : out.sizes()[d];
  const int64_t rows = out.sizes()[dim], n = where.numel();
  dispatch_index("index_add", index.dtype(), [&]<class I>() {
    const RowRuns lists(where.data<I>(), n, rows);
    dispatch(out.dtype(), [&]<class T>() {
      const T* const s = from.data<T>();
      T* const y = to.data<T>();
      if (outer == 1) return add_rows(lists, s, y, inner);
      parallel_for(outer, std::max<int64_t>(1, kGrain / (n * inner)), [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o)
          for (const RowRuns::Run& run : lists.runs)
            add_run(lists, run, s + o * n * inner, y + o * rows * inner, inner, 0, inner);
      });
    });
  });
  if (!out.is_contiguous()) copy(to, out);
}

void masked_fill(const Tensor& x, const Tensor& mask, Scalar value, Tensor& out) {
  dispatch(out.dtype(), [&]<class T>() {
    const auto v = load(value.to<T>());
    map<T, T, bool>([v](auto a, bool covered) { return covered ? v : a; }, out, x, mask);
  });
}

namespace {

/// Up to this many are kept in order while a line is read once; more are sorted.
constexpr int64_t kFew = 16;

/// The first k of a line in the order `before`, into items[0, k).
template <bool largest, class Item, class T, class Before>
void best_few(std::vector<Item>& items, const T* line, int64_t n, int64_t k, int64_t step, const Before& before) {
  int64_t kept = 0;
  compute_t<T> worst{};
  for (int64_t j = 0; j < n; ++j) {
    const compute_t<T> v = load(line[j * step]);
    if (kept == k && (largest ? v <= worst : v >= worst)) continue;
    const Item item{v, j};
    if (kept == k && !before(item, items[static_cast<size_t>(k - 1)])) continue;
    int64_t at = kept < k ? kept++ : k - 1;
    for (; at > 0 && before(item, items[static_cast<size_t>(at - 1)]); --at)
      items[static_cast<size_t>(at)] = items[static_cast<size_t>(at - 1)];
    items[static_cast<size_t>(at)] = item;
    worst = items[static_cast<size_t>(kept - 1)].value;
  }
}

}  // namespace

void topk(const Tensor& x, int64_t dim, bool largest, Tensor& values, Tensor& indices) {
  if (values.numel() == 0) return;
  const int64_t n = x.sizes()[dim], k = values.sizes()[dim];
  const Tensor lines = lines_of(x, dim), value_lines = lines_of(values, dim), index_lines = lines_of(indices, dim);
  const Loop<3> loop({&lines, &value_lines, &index_lines});
  const int64_t x_step = x.strides()[dim], value_step = values.strides()[dim], index_step = indices.strides()[dim];
  dispatch(x.dtype(), [&]<class T>() {
    struct Item {
      compute_t<T> value;
      int64_t index;
    };
    auto is_nan = [](compute_t<T> v) { return v != v; };
    // NaN counts as larger than every number; equal values keep their order.
    auto rises = [is_nan](const Item& a, const Item& b) {
      if (a.value < b.value || (!is_nan(a.value) && is_nan(b.value))) return true;
      if (b.value < a.value || (is_nan(a.value) && !is_nan(b.value))) return false;
      return a.index < b.index;
    };
    auto falls = [is_nan](const Item& a, const Item& b) {
      if (b.value < a.value || (is_nan(a.value) && !is_nan(b.value))) return true;
      if (a.value < b.value || (!is_nan(a.value) && is_nan(b.value))) return false;
      return a.index < b.index;
    };
    const T* const from = x.data<T>();
    T* const to = values.data<T>();
    int64_t* const where = indices.data<int64_t>();
    loop.run(
        [&](int64_t count, const auto& at, const auto& steps) {
          std::vector<Item> items(static_cast<size_t>(n));
          auto order = [&](const auto& before) {
            if (k == n)
              std::sort(items.begin(), items.end(), before);
            else
              std::partial_sort(items.begin(), items.begin() + k, items.end(), before);
          };
          auto write = [&](int64_t i) {
            for (int64_t j = 0; j < k; ++j) {
              to[at[1] + i * steps[1] + j * value_step] = static_cast<T>(items[static_cast<size_t>(j)].value);
              where[at[2] + i * steps[2] + j * index_step] = items[static_cast<size_t>(j)].index;
            }
          };
          for (int64_t i = 0; i < count; ++i) {
            const T* const line = from + at[0] + i * steps[0];
            if (k <= kFew) {
              if (largest)
                best_few<true>(items, line, n, k, x_step, falls);
              else
                best_few<false>(items, line, n, k, x_step, rises);
              write(i);
              continue;
            }
            for (int64_t j = 0; j < n; ++j) items[static_cast<size_t>(j)] = {load(line[j * x_step]), j};
            if (largest)
              order(falls);
            else
              order(rises);
            write(i);
          }
        },
        std::max<int64_t>(1, kGrain / 8 / n));
  });
}

}  // namespace weft::cpu_kernels
