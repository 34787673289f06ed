// Dropout: value and gradient.
#include "autograd/ops/dropout.h"

#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/random.h"
#include "tensor/view.h"

namespace weft {

Tensor dropout(Tensor x, double p, bool training) {
  WEFT_CHECK(p >= 0 && p <= 1, "dropout", "the probability must lie in [0, 1], got {}", p);
  WEFT_CHECK(is_floating(x.dtype()), "dropout", "wants a floating dtype, got {}", name(x.dtype()));
  if (!training || p == 0) return x;
  if (p == 1) return record("dropout", {x}, zeros_like(x), [](const Tensor& dy) -> Grads { return {zeros_like(dy)}; });
  const bool reusable = x.unique() && raw::is_dense(x);
  const Tensor dense = raw::is_dense(x) ? raw::detach(x) : raw::contiguous(x);
  Tensor mask = empty_like(dense, boolean);
  Tensor y = reusable ? raw::detach(dense) : empty_like(dense);
  kernels::dropout(dense, p, default_generator().take(dense.numel()), y, mask);
  return record("dropout", {x}, y, [mask = SavedTensor(mask), scale = 1 / (1 - p)](const Tensor& dy) -> Grads {
    Tensor dx = empty_like(mask(), dy.dtype());
    kernels::dropout_grad(dy, mask(), scale, dx);
    return {dx};
  });
}

}  // namespace weft
