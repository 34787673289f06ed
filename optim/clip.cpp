// Clipping works on the gradients in place.
#include "optim/clip.h"

#include <cmath>

#include "optim/gradients.h"
#include "tensor/kernels.h"

namespace weft::optim {
namespace {

/// Where a model without gradients has its norm, and the others have theirs.
Device device_of(const std::vector<Named>& parameters) {
  return parameters.empty() ? cpu : parameters.front().value.device();
}

void scale(std::span<const Tensor> grads, const Tensor& squares, double max_norm) {
  if (grads.empty()) return;
  kernels::clip_scale(grads, squares, max_norm);
  for (const Tensor& grad : grads) grad.storage()->bump_version();
}

[[noreturn]] void fail_nonfinite(const std::vector<Named>& parameters, double norm) {
  for (const Named& p : parameters) {
    const std::vector<Tensor> grads = gradients_of({p});
    if (!std::isfinite(squared_norm(grads)))
      fail("clip_grad_norm", fmt::format("the gradient of {} {} is not finite", p.name, str(p.value.sizes())));
  }
  fail("clip_grad_norm", fmt::format("the norm of the gradients is {}, though those here are finite", norm));
}

}  // namespace

double clip_grad_norm(const std::vector<Named>& parameters, double max_norm, const ClipOptions& options) {
  WEFT_CHECK(max_norm >= 0, "clip_grad_norm", "max_norm must be at least 0, got {}", max_norm);
  const std::vector<Tensor> grads = gradients_of(parameters);
  Tensor squares = squared_norm(grads, device_of(parameters));
  if (options.reduce) kernels::fill(squares, options.reduce(squares.item()));
  scale(grads, squares, max_norm);
  const double norm = std::sqrt(squares.item());
  if (!std::isfinite(norm) && options.error_if_nonfinite) fail_nonfinite(parameters, norm);
  return norm;
}

Tensor clip_grad_norm_async(const std::vector<Named>& parameters, double max_norm, const Tensor& known) {
  WEFT_CHECK(max_norm >= 0, "clip_grad_norm", "max_norm must be at least 0, got {}", max_norm);
  const std::vector<Tensor> grads = gradients_of(parameters);
  const Tensor squares = known.defined() ? known : squared_norm(grads, device_of(parameters));
  scale(grads, squares, max_norm);
  Tensor norm = empty_like(squares);
  kernels::sqrt(squares, norm);
  return norm;
}

Tensor squared_grad_norm(const std::vector<Named>& parameters) {
  return squared_norm(gradients_of(parameters), device_of(parameters));
}

void clip_grad_value(const std::vector<Named>& parameters, double max_value) {
  WEFT_CHECK(max_value >= 0, "clip_grad_value", "max_value must be at least 0, got {}", max_value);
  for (Tensor& grad : gradients_of(parameters)) {
    kernels::clamp(grad, -max_value, max_value, grad);
    grad.storage()->bump_version();
  }
}

}  // namespace weft::optim
