// Matrix products.
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft {

/// a [.., M, K] · b [.., K, N] → [.., M, N]; leading dimensions broadcast. A vector [K] counts as one row on the left
/// and one column on the right, and that dimension is dropped from the result.
Tensor matmul(const Tensor& a, const Tensor& b);

/// activation(x · weightᵀ + bias): x [.., in], weight [out, in], bias [out] or undefined → [.., out]; one fused kernel.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, Activation activation = Activation::none);

}  // namespace weft
