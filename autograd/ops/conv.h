// Convolutions (cross-correlations, as the field calls them) with groups, dilation, bias and a fused activation.
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;  ///< zeros added at each side
  Pair dilation = 1;
  int64_t groups = 1;
  Activation activation = Activation::none;
};

/// x [N, C, H, W], weight [out, C / groups, kh, kw], bias [out] or undefined → [N, out, H', W'] with channels innermost
/// in memory, H' = (H + 2·padding − dilation·(kh − 1) − 1) / stride + 1.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  Activation activation = Activation::none;
};

/// x [N, C, L], weight [out, C / groups, k] → [N, out, L'].
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOptions& options = {});

}  // namespace weft
