// Elementwise functions of one operand, and `where`.
#include "tensor/cuda/map.cuh"
#include "tensor/functors.h"

namespace weft::WEFT_GPU {

#include "tensor/elementwise_unary.def"

void sin(const Tensor& x, Tensor& out) { unary_floating("sin", functors::sin{}, x, out); }
void cos(const Tensor& x, Tensor& out) { unary_floating("cos", functors::cos{}, x, out); }

}  // namespace weft::WEFT_GPU
