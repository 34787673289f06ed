// Views without gradients: new sizes and strides on the same storage. Kernels and gradient rules use these; user code
// uses the differentiable methods of Tensor.
#pragma once

#include "tensor/tensor.h"

namespace weft::raw {

/// Any view: the caller vouches that it stays inside the storage.
Tensor view(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset);
Tensor detach(const Tensor& x);
Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length);
Tensor select(const Tensor& x, int64_t dim, int64_t index);
Tensor transpose(const Tensor& x, int64_t a, int64_t b);
Tensor permute(const Tensor& x, const Shape& order);
Tensor expand(const Tensor& x, const Shape& sizes);
Tensor unsqueeze(const Tensor& x, int64_t dim);
Tensor squeeze(const Tensor& x, int64_t dim);
/// A view where strides allow it, else a contiguous copy.
Tensor reshape(const Tensor& x, const Shape& sizes);
/// x itself where it is row-major, else a copy.
Tensor contiguous(const Tensor& x);
/// x itself where it is channels-last, else a copy.
Tensor channels_last(const Tensor& x);
/// A copy with x's order of strides where x is dense.
Tensor clone(const Tensor& x);
Tensor to(const Tensor& x, DType dtype);
/// True where two elements of x share memory (an expanded view).
bool overlaps_itself(const Tensor& x);
/// True where a write to one may change the other in part: same storage, ranges that meet, not the same view.
bool partly_overlap(const Tensor& a, const Tensor& b);
/// Every element is there once and nothing lies between: a permutation of row-major.
bool is_dense(const Tensor& x);

}  // namespace weft::raw
