// Small matrix products in registers: what blocked kernels are made of.
#pragma once

#include <cstdint>

#include "tensor/cpu/vectors.h"
#include "tensor/memory.h"

namespace weft::cpu_kernels {

inline constexpr int64_t kLanes = kLanesOf<float>;
using Vector = VectorOf<float>::type;

/// Scratch memory of floats (or doubles), from the allocator's cache.
template <class T = float>
class Scratch {
 public:
  explicit Scratch(int64_t count) : storage_(make_ref<Storage>(count * int64_t{sizeof(T)}, Device{})) {}
  T* data() const { return static_cast<T*>(storage_->data()); }

 private:
  Ref<Storage> storage_;
};

/// c [rows, columns] (+)= a [rows, depth] · b [depth, columns] for Rows rows and 16·Width columns, all in registers.
/// a is read at a[row · row_step + k · depth_step].
template <int Rows, int Width, bool Add>
__attribute__((always_inline)) inline void multiply_tile(const float* a, int64_t row_step, int64_t depth_step,
                                                         const float* b, int64_t b_step, int64_t depth, float* c,
                                                         int64_t c_step) {
  Vector sum[Rows][Width];
  for (int r = 0; r < Rows; ++r)
    for (int w = 0; w < Width; ++w) sum[r][w] = Add ? load_vector(c + r * c_step + w * kLanes) : Vector{};
  for (int64_t k = 0; k < depth; ++k) {
    Vector row[Width];
    for (int w = 0; w < Width; ++w) row[w] = load_vector(b + k * b_step + w * kLanes);
    for (int r = 0; r < Rows; ++r) {
      const float factor = a[r * row_step + k * depth_step];
      for (int w = 0; w < Width; ++w) sum[r][w] += factor * row[w];
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int w = 0; w < Width; ++w) store_vector(c + r * c_step + w * kLanes, sum[r][w]);
}

/// The columns from `from` on that fill Width vectors; returns the first that do not.
template <int Rows, int Width, bool Add>
int64_t multiply_columns(int64_t from, const float* a, int64_t row_step, int64_t depth_step, int64_t rows,
                         const float* b, int64_t depth, int64_t columns, float* c) {
  for (; from + Width * kLanes <= columns; from += Width * kLanes) {
    int64_t r = 0;
    for (; r + Rows <= rows; r += Rows)
      multiply_tile<Rows, Width, Add>(a + r * row_step, row_step, depth_step, b + from, columns, depth,
                                      c + r * columns + from, columns);
    constexpr int kHalf = Rows / 2;  // so that few are left to go one by one
    for (; r + kHalf <= rows; r += kHalf)
      multiply_tile<kHalf, Width, Add>(a + r * row_step, row_step, depth_step, b + from, columns, depth,
                                       c + r * columns + from, columns);
    for (; r < rows; ++r)
      multiply_tile<1, Width, Add>(a + r * row_step, row_step, depth_step, b + from, columns, depth,
                                   c + r * columns + from, columns);
  }
  return from;
}

/// All columns, a multiple of the lanes, in tiles that fill the registers: 32 of AVX-512, 16 elsewhere.
template <bool Add>
void multiply(const float* a, int64_t row_step, int64_t depth_step, int64_t rows, const float* b, int64_t depth,
              int64_t columns, float* c) {
  int64_t from = 0;
  if constexpr (kLanes == 16) {
    from = multiply_columns<6, 4, Add>(from, a, row_step, depth_step, rows, b, depth, columns, c);
    from = multiply_columns<12, 2, Add>(from, a, row_step, depth_step, rows, b, depth, columns, c);
  } else {
    from = multiply_columns<6, 2, Add>(from, a, row_step, depth_step, rows, b, depth, columns, c);
  }
  multiply_columns<12, 1, Add>(from, a, row_step, depth_step, rows, b, depth, columns, c);
}

/// The same in double, by plain loops.
template <bool Add>
void multiply(const double* a, int64_t row_step, int64_t depth_step, int64_t rows, const double* b, int64_t depth,
              int64_t columns, double* c) {
  for (int64_t r = 0; r < rows; ++r, c += columns) {
    for (int64_t j = 0; j < columns && !Add; ++j) c[j] = 0;
    for (int64_t k = 0; k < depth; ++k) {
      const double factor = a[r * row_step + k * depth_step];
      for (int64_t j = 0; j < columns; ++j) c[j] += factor * b[k * columns + j];
    }
  }
}

}  // namespace weft::cpu_kernels
