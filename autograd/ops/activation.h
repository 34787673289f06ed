// The gradient of activations that matrix products and convolutions have fused.
#pragma once

#include "tensor/tensor.h"

namespace weft {

/// dy where y > 0, else 0, laid out like y; in dy's own memory where nothing else can see it. For gradient rules.
Tensor relu_gradient(const Tensor& dy, const Tensor& y);

}  // namespace weft
