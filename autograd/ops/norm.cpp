// Normalisation: value and gradient.
#include "autograd/ops/norm.h"

#include "autograd/autograd.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// The dtype of statistics and weights inside the kernels.
DType statistics_dtype(DType x) { return x == DType::f64 ? DType::f64 : DType::f32; }

void check_floating(const char* op, const Tensor& x) {
  WEFT_CHECK(is_floating(x.dtype()), op, "wants a floating dtype, got {} {}", name(x.dtype()), str(x.sizes()));
}

/// A weight of these sizes as the kernels want it, undefined where it is.
Tensor prepared(const char* op, const char* what, const Tensor& t, const Tensor& x, const Shape& sizes) {
  if (!t.defined()) return {};
  WEFT_CHECK(t.sizes() == sizes, op, "{} wants shape {}, got {} (input {})", what, str(sizes), str(t.sizes()),
             str(x.sizes()));
  const DType wanted = statistics_dtype(x.dtype());
  WEFT_CHECK(t.dtype() == x.dtype() || t.dtype() == wanted, op, "{} is {}, the input {}; convert one with .to()", what,
             name(t.dtype()), name(x.dtype()));
  WEFT_CHECK(t.device() == x.device(), op, "{} is on {}, the input on {}", what, name(t.device()), name(x.device()));
  return raw::contiguous(raw::to(t, wanted));
}

/// What is asked of a gradient, and the weight's own dtype.
struct Wanted {
  bool x, weight, bias;
  DType weight_dtype, bias_dtype;

  Wanted(const Tensor& input, const Tensor& w, const Tensor& b)
      : x(needs_grad(input)),
        weight(needs_grad(w)),
        bias(needs_grad(b)),
        weight_dtype(w.defined() ? w.dtype() : input.dtype()),
        bias_dtype(b.defined() ? b.dtype() : input.dtype()) {}
};

/// Room for the gradients, the kernel's work, and the gradients in the dtypes of what they belong to.
template <class Kernel>
Grads gradients(const Wanted& wanted, const Tensor& x, const Shape& weight_sizes, const Kernel& kernel) {
  const TensorOptions options(statistics_dtype(x.dtype()), x.device());
  Tensor dx = wanted.x ? empty_like(x) : Tensor();
  Tensor dweight = wanted.weight ? empty(weight_sizes, options) : Tensor();
  Tensor dbias = wanted.bias ? empty(weight_sizes, options) : Tensor();
  kernel(dx, dweight, dbias);
  if (wanted.weight) dweight = raw::to(dweight, wanted.weight_dtype);
  if (wanted.bias) dbias = raw::to(dbias, wanted.bias_dtype);
  return {dx, dweight, dbias};
}

void check_running(const Tensor& running, const char* what, const Tensor& x, const Shape& sizes) {
  if (!running.defined()) return;
  WEFT_CHECK(running.sizes() == sizes && running.dtype() == statistics_dtype(x.dtype()) && running.is_contiguous(),
             "batch_norm", "{} wants {} {}, got {} {} (input {} {})", what, name(statistics_dtype(x.dtype())),
             str(sizes), name(running.dtype()), str(running.sizes()), name(x.dtype()), str(x.sizes()));
}

}  // namespace

Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor running_mean, Tensor running_var,
                  const BatchNormOptions& options) {
  const char* const op = "batch_norm";
  check_floating(op, x);
  WEFT_CHECK(x.dim() >= 2, op, "wants an input [N, C, …], got {}", str(x.sizes()));
  const int64_t channels = x.sizes()[1], count = channels ? x.numel() / channels : 0;
  const Shape sizes{channels};
  const Tensor w = prepared(op, "weight", weight, x, sizes), b = prepared(op, "bias", bias, x, sizes);
  check_running(running_mean, "running_mean", x, sizes);
  check_running(running_var, "running_var", x, sizes);
  WEFT_CHECK(!options.training || count != 1, op,
             "training wants more than one value per channel to estimate a variance, the input is {}", str(x.sizes()));
  WEFT_CHECK(options.training || (running_mean.defined() && running_var.defined()), op,
             "evaluation wants the running statistics");

  const Tensor dense = x.is_channels_last() ? x : raw::contiguous(x);
  Tensor mean = empty(sizes, {statistics_dtype(x.dtype()), x.device()}), rstd = empty_like(mean);
  const bool training = options.training && count > 0;
  if (training) {
    Tensor moved_mean = replaying() ? Tensor() : running_mean, moved_var = replaying() ? Tensor() : running_var;
    kernels::batch_norm_statistics(dense, options.eps, options.momentum, mean, rstd, moved_mean, moved_var);
    for (const Tensor& moved : {moved_mean, moved_var})
      if (moved.defined()) moved.storage()->bump_version();
  } else if (options.training) {  // nothing to normalise
    mean.zero_();
    rstd.zero_();
  } else {
    kernels::copy(running_mean, mean);
    kernels::affine(running_var, 1, options.eps, rstd);
    kernels::rsqrt(rstd, rstd);
  }
  Tensor y = empty_like(dense);
  kernels::batch_norm(dense, mean, rstd, w, b, y);
  return record(op, {x, weight, bias}, y,
                [x = SavedTensor(dense), w = w.defined() ? SavedTensor(w) : SavedTensor(), mean, rstd, sizes, training,
                 wanted = Wanted(x, weight, bias)](const Tensor& dy) -> Grads {
                  return gradients(wanted, x(), sizes, [&](Tensor& dx, Tensor& dw, Tensor& db) {
                    kernels::batch_norm_grad(dy, x(), mean, rstd, w.defined() ? w() : Tensor(), training, dx, dw, db);
                  });
                });
}

namespace {

/// Layer norm, or without a centre the root-mean-square norm.
Tensor norm_of_rows(const char* op, const Tensor& x, const Shape& sizes, const Tensor& weight, const Tensor& bias,
                    double eps, bool centred) {
  check_floating(op, x);
  const int64_t outer = x.dim() - sizes.size();
  bool fits = outer >= 0 && !sizes.empty();
  for (int64_t i = 0; i < sizes.size() && fits; ++i) fits = x.sizes()[outer + i] == sizes[i];
  WEFT_CHECK(fits, op, "normalises over {}, which the input {} does not end in", str(sizes), str(x.sizes()));
  const Tensor w = prepared(op, "weight", weight, x, sizes), b = prepared(op, "bias", bias, x, sizes);
  const Tensor dense = raw::contiguous(x);
  int64_t rows = 1;
  for (int64_t i = 0; i < outer; ++i) rows *= x.sizes()[i];
  const TensorOptions statistics(statistics_dtype(x.dtype()), x.device());
  Tensor y = empty(x.sizes(), {x.dtype(), x.device()}), rstd = empty({rows}, statistics);
  Tensor mean = centred ? empty({rows}, statistics) : Tensor();
  kernels::layer_norm(dense, w, b, eps, y, mean, rstd);
  return record(op, {x, weight, bias}, y,
                [x = SavedTensor(dense), w = w.defined() ? SavedTensor(w) : SavedTensor(), mean, rstd, sizes,
                 wanted = Wanted(x, weight, bias)](const Tensor& dy) -> Grads {
                  return gradients(wanted, x(), sizes, [&](Tensor& dx, Tensor& dw, Tensor& db) {
                    kernels::layer_norm_grad(dy, x(), mean, rstd, w.defined() ? w() : Tensor(), dx, dw, db);
                  });
                });
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  WEFT_CHECK(weight.defined() || bias.defined(), "layer_norm", "without weight and bias the sizes must be named");
  return norm_of_rows("layer_norm", x, weight.defined() ? weight.sizes() : bias.sizes(), weight, bias, eps, true);
}

Tensor layer_norm(const Tensor& x, const Shape& sizes, const Tensor& weight, const Tensor& bias, double eps) {
  return norm_of_rows("layer_norm", x, sizes, weight, bias, eps, true);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  return norm_of_rows("rms_norm", x, weight.sizes(), weight, {}, eps, false);
}

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const char* const op = "group_norm";
  check_floating(op, x);
  WEFT_CHECK(x.dim() >= 2, op, "wants an input [N, C, …], got {}", str(x.sizes()));
  const int64_t channels = x.sizes()[1];
  WEFT_CHECK(groups > 0 && channels % groups == 0, op, "{} channels do not make {} groups (input {})", channels, groups,
             str(x.sizes()));
  const Shape sizes{channels};
  const Tensor w = prepared(op, "weight", weight, x, sizes), b = prepared(op, "bias", bias, x, sizes);
  const Tensor dense = raw::contiguous(x);
  Tensor y = empty(x.sizes(), {x.dtype(), x.device()});
  Tensor mean = empty({x.sizes()[0], groups}, {statistics_dtype(x.dtype()), x.device()}), rstd = empty_like(mean);
  kernels::group_norm(dense, w, b, eps, y, mean, rstd);
  return record(op, {x, weight, bias}, y,
                [x = SavedTensor(dense), w = w.defined() ? SavedTensor(w) : SavedTensor(), mean, rstd, sizes,
                 wanted = Wanted(x, weight, bias)](const Tensor& dy) -> Grads {
                  return gradients(wanted, x(), sizes, [&](Tensor& dx, Tensor& dw, Tensor& db) {
                    kernels::group_norm_grad(dy, x(), mean, rstd, w.defined() ? w() : Tensor(), dx, dw, db);
                  });
                });
}

}  // namespace weft
