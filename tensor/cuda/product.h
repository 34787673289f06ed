// What the kernels of matrix products and of convolutions share: products with bias and activation.
#pragma once

#include "tensor/cuda/blas.h"
#include "tensor/kernels.h"

namespace weft::WEFT_GPU {

/// Runs `g` with bias and activation, which become its epilogue where the BLAS has it, else more passes over `out`: c
/// as a tensor [.., bias' size].
void product(blas::Gemm g, const Tensor& bias, Activation activation, Tensor& out);

/// out [.., n] = activation(out + bias [n]); the bias may be undefined.
inline void finish(const Tensor& bias, Activation activation, Tensor& out) {
  if (bias.defined() || activation != Activation::none) bias_activation(out, bias, out.dim() - 1, activation, out);
}

}  // namespace weft::WEFT_GPU
