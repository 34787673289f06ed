// Dropout: value and gradient.
#include "autograd/ops/dropout.h"

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/random.h"
#include "tensor/view.h"

namespace weft {
namespace {

void check_probability(const char* op, double p) {
  WEFT_CHECK(p >= 0 && p <= 1, op, "the probability must lie in [0, 1], got {}", p);
}

/// dy / (1 - p) where the mask is true, else 0.
Tensor kept_gradient(const Tensor& dy, const Tensor& mask, double p) {
  Tensor dx = empty_like(mask, dy.dtype());
  kernels::dropout_grad(dy, mask, 1 / (1 - p), dx);
  return dx;
}

}  // namespace

Tensor dropout(Tensor x, double p, bool training) {
  check_probability("dropout", p);
  WEFT_CHECK(is_floating(x.dtype()), "dropout", "wants a floating dtype, got {}", name(x.dtype()));
  if (!training || p == 0) return x;
  if (p == 1) return record("dropout", {x}, zeros_like(x), [](const Tensor& dy) -> Grads { return {zeros_like(dy)}; });
  const bool reusable = x.unique() && raw::is_dense(x);
  const Tensor dense = raw::is_dense(x) ? raw::detach(x) : raw::contiguous(x);
  Tensor mask = empty_like(dense, boolean);
  Tensor y = reusable ? raw::detach(dense) : empty_like(dense);
  kernels::dropout(dense, p, default_generator().take(dense.numel()), y, mask);
  return record("dropout", {x}, y,
                [mask = SavedTensor(mask), p](const Tensor& dy) -> Grads { return {kept_gradient(dy, mask(), p)}; });
}

Tensor dropout_add(Tensor x, const Tensor& bias, const Tensor& residual, double p, bool training) {
  if (autocast::mixed(x, residual) || (bias.defined() && autocast::mixed(x, bias)))
    return dropout_add(autocast::widened(x), bias.defined() ? autocast::widened(bias) : bias,
                       autocast::widened(residual), p, training);
  check_probability("dropout_add", p);
  WEFT_CHECK(is_floating(x.dtype()), "dropout_add", "wants a floating dtype, got {}", name(x.dtype()));
  WEFT_CHECK(x.sizes() == residual.sizes() && x.dtype() == residual.dtype(), "dropout_add",
             "x is {} {}, the residual {} {}", name(x.dtype()), str(x.sizes()), name(residual.dtype()),
             str(residual.sizes()));
  WEFT_CHECK(!bias.defined() || (x.dim() > 0 && bias.sizes() == Shape{x.size(-1)} && bias.dtype() == x.dtype()),
             "dropout_add", "the bias of x {} {} is {} {}", name(x.dtype()), str(x.sizes()),
             bias.defined() ? name(bias.dtype()) : "", bias.defined() ? str(bias.sizes()) : "");
  if (!training) p = 0;
  const bool reusable = p < 1 && x.unique() && x.is_contiguous();
  const Tensor dense = raw::contiguous(x), rest = raw::contiguous(residual);
  Tensor mask = p > 0 && p < 1 ? empty_like(dense, boolean) : Tensor();
  Tensor y = reusable ? raw::detach(dense) : empty_like(dense);
  if (p == 1)
    kernels::copy(rest, y);
  else
    kernels::dropout_add(dense, bias.defined() ? raw::contiguous(bias) : bias, rest, p,
                         mask.defined() ? default_generator().take(dense.numel()) : Philox(), y, mask);
  return record(
      "dropout_add", {x, bias, residual}, y,
      [mask = mask.defined() ? SavedTensor(mask) : SavedTensor(), p, dx = needs_grad(x), dbias = needs_grad(bias),
       dresidual = needs_grad(residual), columns = bias.defined() ? bias.numel() : 0](const Tensor& dy_any) -> Grads {
        Grads grads{Tensor(), Tensor(), dresidual ? dy_any : Tensor()};
        if (!dx && !dbias) return grads;
        const Tensor dy = raw::contiguous(dy_any);
        const Tensor through = p == 1 ? zeros_like(dy) : mask.defined() ? kept_gradient(dy, mask(), p) : dy;
        if (dx) grads[0] = through;
        if (dbias) grads[1] = sum_to(through, {columns});
        return grads;
      });
}

}  // namespace weft
