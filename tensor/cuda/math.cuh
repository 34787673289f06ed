// Elementary functions of the functors on a GPU: the device library's own, in the precision of their argument.
#pragma once

#include <cmath>

#include "tensor/host_device.h"

namespace weft::gpu_math {

// clang-format off
WEFT_HD float exp(float x) { return ::expf(x); }
WEFT_HD double exp(double x) { return ::exp(x); }
WEFT_HD float log(float x) { return ::logf(x); }
WEFT_HD double log(double x) { return ::log(x); }
WEFT_HD float erf(float x) { return ::erff(x); }
WEFT_HD double erf(double x) { return ::erf(x); }
WEFT_HD float tanh(float x) { return ::tanhf(x); }
WEFT_HD double tanh(double x) { return ::tanh(x); }
/// log(1 + x) for x in [0, 1].
WEFT_HD float log1p_unit(float x) { return ::log1pf(x); }
WEFT_HD double log1p_unit(double x) { return ::log1p(x); }
template <class T> WEFT_HD T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
// clang-format on

}  // namespace weft::gpu_math

namespace weft::functors {
namespace math = gpu_math;
}
