// Reductions. `dims` are the dimensions that vanish (none named: all); `keepdim` leaves them with size 1.
#pragma once

#include "tensor/tensor.h"

namespace weft {

Tensor sum(const Tensor& x, const Shape& dims = {}, bool keepdim = false);

}  // namespace weft
