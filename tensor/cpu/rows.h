// Sums over a contiguous row, for kernels that work row by row.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weft::cpu_kernels {

/// Accumulators side by side: as many as fill a few vector registers.
inline constexpr int64_t kRowLanes = 32;

/// Σ f(i) for i < n: in lanes of C within stretches of 1024 elements, these in double.
template <class C, class F>
double row_sum(int64_t n, const F& f) {
  double total = 0;
  int64_t i = 0;
  while (i + kRowLanes <= n) {
    C lane[kRowLanes] = {};
    const int64_t last = std::min(n, i + 1024) - kRowLanes;
    for (; i <= last; i += kRowLanes)
      for (int64_t l = 0; l < kRowLanes; ++l) lane[l] += f(i + l);
    for (int64_t width = kRowLanes / 2; width > 0; width /= 2)
      for (int64_t l = 0; l < width; ++l) lane[l] += lane[l + width];
    total += static_cast<double>(lane[0]);
  }
  C rest = 0;
  for (; i < n; ++i) rest += f(i);
  return total + static_cast<double>(rest);
}

}  // namespace weft::cpu_kernels
