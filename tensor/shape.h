// Sizes, strides and lists of dimensions: up to eight 64-bit numbers without a heap allocation.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace weft {

inline constexpr int64_t kMaxDims = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> values) : Shape(std::span(values.begin(), values.size())) {}
  explicit Shape(std::span<const int64_t> values);
  /// `n` times `value`.
  static Shape filled(int64_t n, int64_t value);

  int64_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  int64_t operator[](int64_t i) const { return values_[static_cast<size_t>(i)]; }
  int64_t& operator[](int64_t i) { return values_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + count_; }
  int64_t* begin() { return values_.data(); }
  int64_t* end() { return values_.data() + count_; }
  int64_t back() const { return values_[static_cast<size_t>(count_ - 1)]; }
  void push_back(int64_t value);
  void erase(int64_t position);
  void insert(int64_t position, int64_t value);
  bool operator==(const Shape& other) const;

  /// Product of all numbers (1 for none); throws where it passes 2^63.
  int64_t numel() const;

 private:
  std::array<int64_t, kMaxDims> values_{};
  int64_t count_ = 0;
};

/// "[2, 3]".
std::string str(const Shape& shape);
/// Strides of a row-major tensor.
Shape contiguous_strides(const Shape& sizes);
/// Strides of a 4-d tensor [N, C, H, W] whose channels are innermost in memory.
Shape channels_last_strides(const Shape& sizes);
/// The dimensions from the smallest stride to the largest, later ones first among equals.
Shape by_rising_stride(const Shape& strides);
/// Where element `flat` in row-major order is: one index a dimension.
Shape position_of(int64_t flat, const Shape& sizes);
/// The common shape of two operands, numpy's rule; throws naming `op` where there is none.
Shape broadcast(const char* op, const Shape& a, const Shape& b);
/// A dimension counted from the end where negative; throws naming `op` where it is out of range.
int64_t wrap_dim(const char* op, int64_t dim, int64_t ndim);

}  // namespace weft
