// Rows added up by index, in the same order for any number of threads: positions are sorted by row, and every sum runs
// over its positions in rising order, in double.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "tensor/cpu/loop.h"

namespace weft::cpu_kernels {

/// The positions at which each row is named.
struct RowRuns {
  struct Run {
    int64_t row, begin, end;  // of `positions`
  };
  std::vector<int64_t> positions;
  std::vector<Run> runs;
  int64_t longest = 0;

  /// index[i] in [0, rows); positions that name row `skip` are left out.
  template <class I>
  RowRuns(const I* index, int64_t n, int64_t rows, int64_t skip = -1) {
    std::vector<int64_t> ends(static_cast<size_t>(rows) + 1);
    for (int64_t i = 0; i < n; ++i)
      if (index[i] != skip) ++ends[static_cast<size_t>(index[i]) + 1];
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
      if (ends[r + 1] > 0) runs.push_back({static_cast<int64_t>(r), ends[r], ends[r] + ends[r + 1]});
      longest = std::max(longest, ends[r + 1]);
      ends[r + 1] += ends[r];
    }
    positions.resize(static_cast<size_t>(ends.back()));
    for (int64_t i = 0; i < n; ++i)
      if (index[i] != skip) positions[static_cast<size_t>(ends[static_cast<size_t>(index[i])]++)] = i;
  }
};

/// out[row] += source[p] for each position p of a run, columns [first, last).
template <class T>
void add_run(const RowRuns& lists, const RowRuns::Run& run, const T* source, T* out, int64_t width, int64_t first,
             int64_t last) {
  using Sum = std::conditional_t<FloatingElement<T>, double, T>;
  constexpr int64_t kBlock = 64;
  T* const row = out + run.row * width;
  auto block = [&](int64_t c0, auto n) {
    Sum sums[kBlock];
    for (int64_t c = 0; c < n; ++c) sums[c] = static_cast<Sum>(load(row[c0 + c]));
    for (int64_t i = run.begin; i < run.end; ++i) {
      const T* const x = source + lists.positions[static_cast<size_t>(i)] * width + c0;
      for (int64_t c = 0; c < n; ++c) sums[c] = static_cast<Sum>(sums[c] + static_cast<Sum>(load(x[c])));
    }
    for (int64_t c = 0; c < n; ++c) row[c0 + c] = static_cast<T>(static_cast<compute_t<T>>(sums[c]));
  };
  int64_t c0 = first;
  for (; c0 + kBlock <= last; c0 += kBlock) block(c0, std::integral_constant<int64_t, kBlock>());
  if (c0 < last) block(c0, last - c0);
}

/// Adds the rows of source [N, width] to those of out [rows, width] that `lists` names, both dense.
template <class T>
void add_rows(const RowRuns& lists, const T* source, T* out, int64_t width) {
  const auto n = static_cast<int64_t>(lists.positions.size());
  // A row that takes most of the positions (padding) would leave the other threads idle: share out columns instead.
  if (lists.longest > n / 2 && width >= 32) {
    parallel_for(width, std::max<int64_t>(16, kGrain / std::max<int64_t>(n, 1)), [&](int64_t first, int64_t last) {
      for (const RowRuns::Run& run : lists.runs) add_run(lists, run, source, out, width, first, last);
    });
    return;
  }
  parallel_for(n, std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)), [&](int64_t begin, int64_t end) {
    auto run = std::ranges::lower_bound(lists.runs, begin, {}, &RowRuns::Run::begin);
    for (; run != lists.runs.end() && run->begin < end; ++run) add_run(lists, *run, source, out, width, 0, width);
  });
}

}  // namespace weft::cpu_kernels
