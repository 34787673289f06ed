// Activations that matrix products and convolutions have fused.
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft {

/// dy where y > 0, else 0, laid out like y; in dy's own memory where nothing else can see it. For gradient rules.
Tensor relu_gradient(const Tensor& dy, const Tensor& y);

/// Whether the gradient is one of what came before: then nothing is fused where gradients are recorded.
constexpr bool wants_input(Activation a) { return a == Activation::gelu || a == Activation::gelu_tanh; }

}  // namespace weft
