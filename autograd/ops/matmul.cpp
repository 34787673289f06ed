// Matrix products: value and gradient.
#include "autograd/ops/matmul.h"

#include "autograd/autocast.h"
#include "autograd/ops/activation.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "autograd/work.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// The product without gradient, for operands of at least two dimensions.
Tensor product(const Tensor& a, const Tensor& b) {
  const int64_t rows = a.size(-2), inner = a.size(-1), columns = b.size(-1);
  Shape a_batch, b_batch;
  for (int64_t i = 0; i < a.dim() - 2; ++i) a_batch.push_back(a.sizes()[i]);
  for (int64_t i = 0; i < b.dim() - 2; ++i) b_batch.push_back(b.sizes()[i]);
  const Shape batch = broadcast("matmul", a_batch, b_batch);
  auto with_batch = [&](int64_t m, int64_t n) {
    Shape sizes = batch;
    sizes.push_back(m);
    sizes.push_back(n);
    return sizes;
  };
  Tensor out = empty(with_batch(rows, columns), {a.dtype(), a.device()});
  count_multiply_adds(batch.numel() * rows * inner * columns);
  if (batch.empty()) {
    kernels::matmul(a, b, Tensor(), Activation::none, out);
    return out;
  }
  // One batch dimension is what kernels take; a single matrix stays one.
  auto flat = [&](const Tensor& x, const Shape& own, int64_t m, int64_t n) {
    if (own.numel() == 1) return raw::expand(raw::reshape(x, {1, m, n}), {batch.numel(), m, n});
    return raw::reshape(raw::expand(x, with_batch(m, n)), {batch.numel(), m, n});
  };
  Tensor flat_out = raw::reshape(out, {batch.numel(), rows, columns});
  if (out.numel() > 0)
    kernels::matmul(flat(a, a_batch, rows, inner), flat(b, b_batch, inner, columns), Tensor(), Activation::none,
                    flat_out);
  return out;
}

void check_operands(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == b.dtype(), op, "the operands have dtypes {} and {}", name(a.dtype()), name(b.dtype()));
  WEFT_CHECK(a.device() == b.device(), op, "the operands are on {} and {}", name(a.device()), name(b.device()));
  WEFT_CHECK(is_floating(a.dtype()), op, "wants a floating dtype, got {}", name(a.dtype()));
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (autocast::narrows(a, b)) return matmul(autocast::narrowed(a), autocast::narrowed(b));
  check_operands("matmul", a, b);
  WEFT_CHECK(a.dim() >= 1 && b.dim() >= 1, "matmul", "wants at least one dimension, got {} and {}", str(a.sizes()),
             str(b.sizes()));
  if (a.dim() == 1) return matmul(a.unsqueeze(0), b).squeeze(b.dim() == 1 ? 0 : -2);
  if (b.dim() == 1) return matmul(a, b.unsqueeze(1)).squeeze(-1);
  WEFT_CHECK(a.size(-1) == b.size(-2), "matmul", "the inner sizes of {} and {} differ: {} and {}", str(a.sizes()),
             str(b.sizes()), a.size(-1), b.size(-2));
  const bool da = needs_grad(a), db = needs_grad(b);
  return record("matmul", {a, b}, product(a, b),
                [a = db ? SavedTensor(a) : SavedTensor(), b = da ? SavedTensor(b) : SavedTensor(), as = a.sizes(),
                 bs = b.sizes()](const Tensor& dy) -> Grads {
                  return {b.defined() ? sum_to(product(dy, raw::transpose(b(), -2, -1)), as) : Tensor(),
                          a.defined() ? sum_to(product(raw::transpose(a(), -2, -1), dy), bs) : Tensor()};
                });
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  if (autocast::narrows(x, weight, bias))
    return linear(autocast::narrowed(x), autocast::narrowed(weight), autocast::narrowed(bias), activation);
  check_operands("linear", x, weight);
  WEFT_CHECK(weight.dim() == 2, "linear", "the weight wants 2 dimensions [out, in], got {}", str(weight.sizes()));
  const int64_t out = weight.size(0), in = weight.size(1);
  WEFT_CHECK(x.dim() >= 1 && x.size(-1) == in, "linear",
             "weight wants {} input features, input has {} (input {}, weight {})", in, x.dim() >= 1 ? x.size(-1) : 0,
             str(x.sizes()), str(weight.sizes()));
  if (bias.defined()) {
    check_operands("linear", x, bias);
    WEFT_CHECK(bias.sizes() == Shape{out}, "linear", "the bias wants shape [{}], got {}", out, str(bias.sizes()));
  }
  if (wants_input(activation) && (needs_grad(x) || needs_grad(weight) || needs_grad(bias)))
    return activate(linear(x, weight, bias), activation);
  Shape sizes = x.sizes();
  sizes.erase(x.dim() - 1);
  const int64_t rows = sizes.numel();
  sizes.push_back(out);
  const Tensor flat = raw::reshape(x, {rows, in});
  Tensor y = empty(sizes, {x.dtype(), x.device()});
  Tensor flat_y = raw::reshape(y, {rows, out});
  kernels::matmul(flat, raw::transpose(weight, 0, 1), bias.defined() ? raw::contiguous(bias) : bias, activation,
                  flat_y);
  count_multiply_adds(rows * in * out);
  return record("linear", {x, weight, bias}, y,
                [x = needs_grad(weight) ? SavedTensor(flat) : SavedTensor(),
                 weight = needs_grad(x) ? SavedTensor(weight) : SavedTensor(),
                 y = activation == Activation::none ? SavedTensor() : SavedTensor(y), x_sizes = x.sizes(), rows, out,
                 has_bias = needs_grad(bias)](const Tensor& dy_any) -> Grads {
                  const Tensor dy = raw::reshape(y.defined() ? relu_gradient(dy_any, y()) : dy_any, {rows, out});
                  return {weight.defined() ? raw::reshape(product(dy, weight()), x_sizes) : Tensor(),
                          x.defined() ? product(raw::transpose(dy, 0, 1), x()) : Tensor(),
                          has_bias ? sum_to(dy, {out}) : Tensor()};
                });
}

}  // namespace weft
