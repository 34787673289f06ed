// What a convolution's plan depends on, read off its tensors. Free of cuDNN.
#include <algorithm>

#include "tensor/cuda/cudnn.h"

namespace weft::cudnn {
namespace {

bool same_layout(const Tensor& t, const Shape& strides) {
  for (int64_t d = 0; d < 4; ++d)
    if (t.size(d) != 1 && t.strides()[d] != strides[d]) return false;
  return true;
}

bool row_major_only(const Tensor& t) {
  return same_layout(t, contiguous_strides(t.sizes())) && !same_layout(t, channels_last_strides(t.sizes()));
}

Operand operand(const Tensor& t, bool row_major) {
  const Shape rows = contiguous_strides(t.sizes()), channels = channels_last_strides(t.sizes());
  const Shape& first = row_major ? rows : channels;
  const Shape& second = row_major ? channels : rows;
  const Shape& strides = same_layout(t, first) ? first : same_layout(t, second) ? second : t.strides();
  Operand o;
  std::copy_n(t.sizes().begin(), 4, o.sizes.begin());
  std::copy_n(strides.begin(), 4, o.strides.begin());
  return o;
}

}  // namespace

size_t hash(const ConvKey& key) {
  uint64_t h = 0xcbf29ce484222325u;
  auto add = [&h](int64_t v) { h = (h ^ static_cast<uint64_t>(v)) * 0x9E3779B97F4A7C15u, h ^= h >> 29; };
  for (const Operand* o : {&key.x, &key.w, &key.y})
    for (const Dims* dims : {&o->sizes, &o->strides})
      for (const int64_t v : *dims) add(v);
  for (const Pair p : {key.stride, key.padding, key.dilation}) add(p.h), add(p.w);
  add(key.groups), add(key.alignment);
  add(static_cast<int64_t>(key.direction) << 16 | static_cast<int64_t>(key.dtype) << 8 |
      static_cast<int64_t>(key.epilogue) << 2 | static_cast<int64_t>(key.tf32) << 1 |
      static_cast<int64_t>(key.deterministic));
  return h;
}

ConvKey describe(Direction direction, const Tensor& x, const Tensor& w, const Tensor& y, const ConvParameters& c) {
  const bool row_major = row_major_only(x) || row_major_only(y);
  return {.direction = direction,
          .dtype = y.dtype(),
          .x = operand(x, row_major),
          .w = operand(w, row_major),
          .y = operand(y, row_major),
          .stride = c.stride,
          .padding = c.padding,
          .dilation = c.dilation,
          .groups = c.groups};
}

}  // namespace weft::cudnn
