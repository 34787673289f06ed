// Normalisation. weight and bias are optional and share x's dtype, or are f32 beside a 16-bit x. None of these ops is
// differentiable twice: `create_graph` is refused with an error.
#pragma once

#include "tensor/tensor.h"

namespace weft {

struct BatchNormOptions {
  bool training = true;   ///< normalise by the batch, not by the running tensors
  double momentum = 0.1;  ///< running = (1 - momentum) · running + momentum · batch
  double eps = 1e-5;
};
/// Each channel of x [N, C, …] to mean 0 and variance 1, then · weight [C] + bias [C] (Ioffe and Szegedy 2015).
/// In training it moves the running tensors [C], with the unbiased variance, unless `recompute` is replaying; they may
/// be undefined then. Throws for one value per channel in training, before it touches them. An empty batch leaves them.
Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor running_mean, Tensor running_var,
                  const BatchNormOptions& options = {});

/// Over the trailing dimensions that weight has (Ba, Kiros and Hinton 2016).
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// Over the trailing dimensions `sizes`, with weight and bias of these sizes or undefined.
Tensor layer_norm(const Tensor& x, const Shape& sizes, const Tensor& weight, const Tensor& bias, double eps = 1e-5);
/// x / √(mean x² + eps) · weight over the trailing dimensions that weight has (Zhang and Sennrich 2019).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps = 1e-6);
/// Over each of `groups` groups of neighbouring channels of x [N, C, …]; weight, bias [C] (Wu and He 2018).
Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps = 1e-5);

}  // namespace weft
