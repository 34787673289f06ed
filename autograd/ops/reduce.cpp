// Reductions: value and gradient.
#include "autograd/ops/reduce.h"

#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// x's sizes with 1 for each of `dims`, all of them where none is named.
Shape reduced_sizes(const char* op, const Tensor& x, const Shape& dims) {
  if (dims.empty()) return Shape::filled(x.dim(), 1);
  Shape kept = x.sizes();
  for (int64_t d : dims) kept[wrap_dim(op, d, x.dim())] = 1;
  return kept;
}

/// `kept` without the dimensions that were reduced.
Tensor drop_reduced(const char* op, const Tensor& kept, const Shape& dims, bool keepdim) {
  if (keepdim) return kept;
  if (dims.empty()) return raw::reshape(kept, {});
  Shape sizes;
  for (int64_t i = 0; i < kept.dim(); ++i) {
    bool reduced = false;
    for (int64_t d : dims) reduced |= wrap_dim(op, d, kept.dim()) == i;
    if (!reduced) sizes.push_back(kept.sizes()[i]);
  }
  return raw::reshape(kept, sizes);
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& dims, bool keepdim) {
  const Shape kept = reduced_sizes("sum", x, dims);
  Tensor out = empty(kept, {x.dtype(), x.device()});
  kernels::sum(x, out);
  return record("sum", {x}, drop_reduced("sum", out, dims, keepdim), [kept, sizes = x.sizes()](const Tensor& dy) -> Grads {
    return {raw::expand(raw::reshape(dy, kept), sizes)};
  });
}

}  // namespace weft
