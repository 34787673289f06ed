// Reductions. `dims` are the dimensions that vanish (none named: all); `keepdim` leaves them with size 1. Sums happen
// in double (whole numbers: in i64), so that long reductions lose nothing.
#pragma once

#include "tensor/tensor.h"

namespace weft {

/// Whole numbers and booleans give i64.
Tensor sum(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// NaN over no elements.
Tensor mean(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
/// Whole numbers and booleans give i64. The gradient is right at zeros too.
Tensor prod(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

struct VarOptions {
  double correction = 1;  ///< the divisor is n - correction: 1 is the unbiased estimate, 0 the plain mean of squares
  bool keepdim = false;
};
/// Variance; NaN where n - correction is not positive.
Tensor var(const Tensor& x, const Shape& dims = {}, const VarOptions& options = {});
/// Its square root, the standard deviation. The gradient is 0 where it is 0.
Tensor deviation(const Tensor& x, const Shape& dims = {}, const VarOptions& options = {});

struct NormOptions {
  double p = 2;  ///< (Σ |x|^p)^(1/p), p > 0; infinity: the largest |x|
  bool keepdim = false;
};
/// Vector norm. The gradient is 0 where the norm is 0.
Tensor norm(const Tensor& x, const Shape& dims = {}, const NormOptions& options = {});
/// log Σ e^x without overflow; -infinity over no elements.
Tensor logsumexp(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

/// The largest value. NaN where there is one; among equals the first (in row-major order) gets the whole gradient.
/// Throws where a dimension of size 0 would be reduced, and the same for those below.
Tensor max(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
Tensor min(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

struct ValueIndex {
  Tensor values;
  Tensor indices;  ///< i64
};
/// Along one dimension, with the index: of the first NaN where there is one, else of the first among equals.
ValueIndex max_with_index(const Tensor& x, int64_t dim, bool keepdim = false);
ValueIndex min_with_index(const Tensor& x, int64_t dim, bool keepdim = false);
/// The index alone, i64. Without a dimension: of the row-major order of all elements.
Tensor argmax(const Tensor& x);
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim = false);
Tensor argmin(const Tensor& x);
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim = false);

/// Whether any / every element differs from 0; boolean, no gradient.
Tensor any(const Tensor& x, const Shape& dims = {}, bool keepdim = false);
Tensor all(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

/// Sums of the elements up to each one along a dimension. Whole numbers and booleans give i64.
Tensor cumsum(const Tensor& x, int64_t dim);

}  // namespace weft
