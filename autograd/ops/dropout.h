// Dropout (Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", JMLR 2014),
// inverted.
#pragma once

#include "tensor/tensor.h"

namespace weft {

/// Each element is 0 with probability p, and x / (1 - p) otherwise; x itself where not training or p is 0, zeros (value
/// and gradient) where p is 1, an error for other p outside of [0, 1]. An element's draw depends on the default
/// generator and on its place in memory only (row-major unless x is a dense permutation of it, such as channels-last).
/// Works in x's own memory where x is a temporary that nothing else can see.
Tensor dropout(Tensor x, double p, bool training);

/// residual + dropout(x + bias, p, training) in one pass: what a Transformer's sublayers end with. x [..., D] and
/// residual have the same sizes; bias [D] may be undefined. Draws as dropout of a row-major x does.
Tensor dropout_add(Tensor x, const Tensor& bias, const Tensor& residual, double p, bool training);

}  // namespace weft
