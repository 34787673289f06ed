// Operations by index, joining and cutting, masks, the largest values. Indices are i64 or i32, count from 0, and one
// that is out of range throws with its value, its position and the size.
#pragma once

#include <vector>

#include "tensor/tensor.h"

namespace weft {

/// y[.., i, ..] = x[.., index[.., i, ..], ..] along `dim`. index has x's number of dimensions, and no size above x's
/// except along `dim`; the result has index's sizes.
Tensor gather(const Tensor& x, int64_t dim, const Tensor& index);
/// A copy of x with y[.., index[.., i, ..], ..] += source[.., i, ..]; values that meet are added in order of i, so the
/// result is the same every time.
Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);
/// The slices of x that index [N] names along `dim`, in that order.
Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index);
/// A copy of x with slice i of source added to slice index[i], in order of i.
Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source);

/// The parts one after another along `dim`; all other sizes must agree.
Tensor cat(const std::vector<Tensor>& parts, int64_t dim = 0);
/// Parts of the same sizes along a new dimension.
Tensor stack(const std::vector<Tensor>& parts, int64_t dim = 0);
/// Views of `length` along `dim`, the last one shorter where it does not divide.
std::vector<Tensor> split(const Tensor& x, int64_t length, int64_t dim = 0);
/// Views of the given lengths, which must add up to the size of `dim`.
std::vector<Tensor> split_sizes(const Tensor& x, const std::vector<int64_t>& lengths, int64_t dim = 0);
/// At most `count` views of equal length, the last one shorter where it does not divide.
std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t dim = 0);
/// One view for each index of `dim`, without that dimension.
std::vector<Tensor> unbind(const Tensor& x, int64_t dim = 0);

/// Elements added before and after a dimension.
struct Padding {
  int64_t before = 0, after = 0;
};
/// x with a border of `value`; paddings belong to the last dimensions, in the order of dimensions. Negative ones throw.
Tensor pad(const Tensor& x, const std::vector<Padding>& paddings, Scalar value = 0.0);
/// x in the opposite order along `dim`.
Tensor flip(const Tensor& x, int64_t dim);
/// x moved by `shift` along `dim`, what leaves at one end entering at the other.
Tensor roll(const Tensor& x, int64_t shift, int64_t dim);

/// x with `value` where the boolean mask, broadcast to x, is true; no gradient there. Works in x's own memory where x
/// is a temporary that nothing else can see.
Tensor masked_fill(Tensor x, const Tensor& mask, Scalar value);
/// The last two dimensions with 0 above the given diagonal (0: the main one, positive: above it).
Tensor tril(const Tensor& x, int64_t diagonal = 0);
/// The last two dimensions with 0 below the given diagonal.
Tensor triu(const Tensor& x, int64_t diagonal = 0);
/// [..] → [.., classes]: 1 at each id, 0 elsewhere.
Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype = f32);

/// Values in rank order, and where along the dimension they were (i64).
struct Ranked {
  Tensor values, indices;
};
struct TopkOptions {
  int64_t dim = -1;
  bool largest = true;
};
/// The k largest (or smallest) values, best first. NaN counts as larger than every number; equal values keep their
/// order.
Ranked topk(const Tensor& x, int64_t k, const TopkOptions& options = {});
struct SortOptions {
  int64_t dim = -1;
  bool descending = false;
};
/// All values in order; NaN counts as larger than every number, and equal values keep their order.
Ranked sort(const Tensor& x, const SortOptions& options = {});

}  // namespace weft
