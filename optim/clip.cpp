// Clipping works on the gradients in place.
#include "optim/clip.h"

#include <cmath>

#include "optim/gradients.h"
#include "tensor/kernels.h"

namespace weft::optim {
namespace {

[[noreturn]] void fail_nonfinite(const std::vector<Named>& parameters, double norm) {
  for (const Named& p : parameters) {
    const Tensor grad = p.value.grad();
    if (!grad.defined()) continue;
    const double own = squared_norm(std::span(&grad, 1));
    if (!std::isfinite(own))
      fail("clip_grad_norm", fmt::format("the gradient of {} {} is not finite", p.name, str(grad.sizes())));
  }
  fail("clip_grad_norm", fmt::format("the norm of the gradients is {}, though those here are finite", norm));
}

}  // namespace

double clip_grad_norm(const std::vector<Named>& parameters, double max_norm, const ClipOptions& options) {
  WEFT_CHECK(max_norm >= 0, "clip_grad_norm", "max_norm must be at least 0, got {}", max_norm);
  const std::vector<Tensor> grads = gradients_of(parameters);
  double squares = squared_norm(grads);
  if (options.reduce) squares = options.reduce(squares);
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) {
    if (options.error_if_nonfinite) fail_nonfinite(parameters, norm);
    return norm;
  }
  const double factor = max_norm / (norm + 1e-6);
  if (factor < 1 && !grads.empty()) {
    kernels::scale(grads, factor);
    for (const Tensor& grad : grads) grad.storage()->bump_version();
  }
  return norm;
}

void clip_grad_value(const std::vector<Named>& parameters, double max_value) {
  WEFT_CHECK(max_value >= 0, "clip_grad_value", "max_value must be at least 0, got {}", max_value);
  for (Tensor& grad : gradients_of(parameters)) {
    kernels::clamp(grad, -max_value, max_value, grad);
    grad.storage()->bump_version();
  }
}

}  // namespace weft::optim
