// Pooling over images [N, C, H, W] and sequences [N, C, L]. Results lie channels-last in memory.
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft {

struct Pool2dOptions {
  Pair kernel = 2;
  Pair stride = 0;            ///< 0: as the kernel
  Pair padding = 0;           ///< on both sides; below the kernel
  bool ceil_mode = false;     ///< round the output size up; a window that would start beyond the input is left out
  bool count_padding = true;  ///< averages only: padding counts as zeros
};

struct Pool1dOptions {
  int64_t kernel = 2;
  int64_t stride = 0;
  int64_t padding = 0;
  bool ceil_mode = false;
  bool count_padding = true;
};

/// The largest value of each window. A NaN wins over numbers; of equal values the first in row-major order gets the
/// whole gradient. Padding never wins. Throws where x is not [N, C, H, W] or a window does not fit.
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options = {});
/// The same over x [N, C, L].
Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options = {});

/// The mean of each window. What a window of ceil_mode reaches beyond the padding never counts.
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options = {});
/// The same over x [N, C, L].
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options = {});

/// Mean and maximum over all places: x [N, C, …] → [N, C].
Tensor global_avg_pool(const Tensor& x);
Tensor global_max_pool(const Tensor& x);

}  // namespace weft
