// Elementwise functions of two operands.
#include "tensor/cpu/loop.h"
#include "tensor/functors.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {

#include "tensor/elementwise_binary.def"

}  // namespace weft::cpu_kernels
