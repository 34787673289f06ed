// Convolution by Winograd's minimal filtering F(2x2, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural
// networks", CVPR 2016): 16 products for every 2x2 outputs instead of 36, with transforms of ones and halves only, so
// that the result is as exact as the direct sum's. Channels-last, f32.
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft::cpu_kernels {

/// True for 3x3 kernels with stride 1, no dilation, no groups, padding up to 2 and channels that fill vectors.
bool winograd_applies(const Shape& x, const Shape& weight, const ConvParameters& parameters, DType dtype);

/// The kernels of tensor/kernels.def, for channels-last x, dy, out and dx.
void winograd_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Pair padding, Activation activation,
                      Tensor& out);
void winograd_backward_data(const Tensor& dy, const Tensor& weight, Pair padding, Tensor& dx);
void winograd_backward_weight(const Tensor& x, const Tensor& dy, Pair padding, Tensor& dweight, Tensor& dbias);

}  // namespace weft::cpu_kernels
