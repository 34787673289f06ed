// The text convolution: what is largest over time, without the convolution's output in memory.
#pragma once

#include "tensor/tensor.h"

namespace weft {

struct ConvMaxOptions {
  int64_t pool = 1;  ///< window and stride of a max pooling between ReLU and the maximum over time
};

/// The maximum over time of max_pool1d(relu(conv1d(x, weight, bias)), pool), with its numbers and gradients:
/// x [N, C, L], weight [out, C, k], bias [out] or undefined → [N, out]. Before a maximum over all, pooling only drops
/// the last L' mod pool of the L' = L − k + 1 places. Sequences with channels innermost in memory, such as an embedding
/// [N, L, C] transposed, are read as they lie. The gradient is that of one window for each output: the first of the
/// largest; none where ReLU cut all to 0.
Tensor conv1d_max(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvMaxOptions& options = {});

}  // namespace weft
