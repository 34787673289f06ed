// Arithmetic on shapes.
#include "tensor/shape.h"

#include <algorithm>

#include "tensor/error.h"

namespace weft {

Shape::Shape(std::span<const int64_t> values) {
  for (int64_t v : values) push_back(v);
}

Shape Shape::filled(int64_t n, int64_t value) {
  Shape s;
  for (int64_t i = 0; i < n; ++i) s.push_back(value);
  return s;
}

void Shape::push_back(int64_t value) {
  WEFT_CHECK(count_ < kMaxDims, "shape", "a tensor has at most {} dimensions", kMaxDims);
  values_[static_cast<size_t>(count_++)] = value;
}

void Shape::erase(int64_t position) {
  std::copy(begin() + position + 1, end(), begin() + position);
  --count_;
}

void Shape::insert(int64_t position, int64_t value) {
  push_back(value);
  std::rotate(begin() + position, end() - 1, end());
}

bool Shape::operator==(const Shape& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

int64_t Shape::numel() const {
  int64_t n = 1;
  bool overflow = false;
  for (int64_t v : *this) {
    if (v == 0) return 0;
    overflow |= __builtin_mul_overflow(n, v, &n);
  }
  WEFT_CHECK(!overflow, "shape", "{} has more than 2^63 elements", str(*this));
  return n;
}

std::string str(const Shape& shape) {
  std::string text = "[";
  for (int64_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i ? ", " : "", shape[i]);
  return text + "]";
}

namespace {

/// Wraps where sizes are absurd: whether a tensor of them can exist is `numel`'s question.
int64_t product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

Shape contiguous_strides(const Shape& sizes) {
  Shape strides = sizes;
  int64_t step = 1;
  for (int64_t i = sizes.size() - 1; i >= 0; --i) {
    strides[i] = step;
    step = product(step, std::max<int64_t>(sizes[i], 1));
  }
  return strides;
}

Shape channels_last_strides(const Shape& sizes) {
  WEFT_ASSERT(sizes.size() == 4);
  const int64_t c = sizes[1], h = sizes[2], w = sizes[3];
  return {product(h, product(w, c)), 1, product(w, c), c};
}

Shape by_rising_stride(const Shape& strides) {
  Shape order;
  for (int64_t d = strides.size() - 1; d >= 0; --d) {
    order.push_back(d);
    for (int64_t k = order.size() - 1; k > 0 && strides[order[k]] < strides[order[k - 1]]; --k)
      std::swap(order[k], order[k - 1]);
  }
  return order;
}

Shape position_of(int64_t flat, const Shape& sizes) {
  Shape position = sizes;
  for (int64_t d = sizes.size() - 1; d >= 0; flat /= sizes[d], --d) position[d] = flat % sizes[d];
  return position;
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const int64_t n = std::max(a.size(), b.size());
  Shape out = Shape::filled(n, 1);
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1, y = i <= b.size() ? b[b.size() - i] : 1;
    WEFT_CHECK(x == y || x == 1 || y == 1, op, "shapes {} and {} do not broadcast", str(a), str(b));
    out[n - i] = x == 1 ? y : x;
  }
  return out;
}

int64_t wrap_dim(const char* op, int64_t dim, int64_t ndim) {
  WEFT_CHECK(-ndim <= dim && dim < ndim, op, "dimension {} is out of range for a tensor of {} dimensions", dim, ndim);
  return dim < 0 ? dim + ndim : dim;
}

}  // namespace weft
