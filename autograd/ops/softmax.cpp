// Softmax and its logarithm: value and gradient.
#include "autograd/ops/softmax.h"

#include "autograd/autocast.h"
#include "autograd/record.h"
#include "tensor/kernels.h"

namespace weft {
namespace {

template <class Kernel, class Gradient>
Tensor along(const char* op, const Kernel& kernel, const Gradient& gradient, const Tensor& x, int64_t dim) {
  if (autocast::widens(x)) return along(op, kernel, gradient, autocast::widened(x), dim);
  WEFT_CHECK(is_floating(x.dtype()), op, "wants a floating dtype, got {} {}", name(x.dtype()), str(x.sizes()));
  const int64_t d = wrap_dim(op, dim, x.dim());
  Tensor y = empty(x.sizes(), {x.dtype(), x.device()});
  kernel(x, d, y);
  return record(op, {x}, y, [y = SavedTensor(y), gradient, d](const Tensor& dy) -> Grads {
    Tensor dx = empty(dy.sizes(), {dy.dtype(), dy.device()});
    gradient(dy, y(), d, dx);
    return {dx};
  });
}

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  return along("softmax", kernels::softmax, kernels::softmax_grad, x, dim);
}
Tensor log_softmax(const Tensor& x, int64_t dim) {
  return along("log_softmax", kernels::log_softmax, kernels::log_softmax_grad, x, dim);
}

}  // namespace weft
