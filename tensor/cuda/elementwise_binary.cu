// Elementwise functions of two operands.
#include "tensor/cuda/map.cuh"
#include "tensor/functors.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {

#include "tensor/elementwise_binary.def"

}  // namespace weft::WEFT_GPU
