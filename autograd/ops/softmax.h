// Softmax and its logarithm.
#pragma once

#include "tensor/tensor.h"

namespace weft {

/// e^x over the sum of e^x along one dimension. A row of -infinity alone gives NaN in that row, and so does a row with
/// NaN or +infinity in it; other rows and their gradients are not touched by it.
Tensor softmax(const Tensor& x, int64_t dim = -1);
/// Its logarithm, exact where softmax would round to 0; for the same rows NaN.
Tensor log_softmax(const Tensor& x, int64_t dim = -1);

}  // namespace weft
