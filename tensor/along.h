// One dimension of a row-major tensor, with those around it as one each: [outer, n, inner].
#pragma once

#include "tensor/tensor.h"

namespace weft {

struct Along {
  int64_t outer = 1, n = 1, inner = 1;

  Along(const Tensor& x, int64_t dim) {
    for (int64_t d = 0; d < x.dim(); ++d) (d < dim ? outer : d == dim ? n : inner) *= x.sizes()[d];
  }
};

}  // namespace weft
