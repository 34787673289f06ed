// Elementwise functions of two operands.
#include "tensor/cpu/loop.h"
#include "tensor/functors.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {

#define WEFT_ARITHMETIC(name)                                                             \
  void name(const Tensor& a, const Tensor& b, Tensor& out) {                              \
    dispatch(out.dtype(), [&]<class T>() { map<T, T, T>(functors::name{}, out, a, b); }); \
  }
#define WEFT_FUNCTION(name)                                                                               \
  void name(const Tensor& a, const Tensor& b, Tensor& out) {                                              \
    dispatch_floating(#name, out.dtype(), [&]<class T>() { map<T, T, T>(functors::name{}, out, a, b); }); \
  }
#define WEFT_COMPARISON(name)                                                              \
  void name(const Tensor& a, const Tensor& b, Tensor& out) {                               \
    dispatch(a.dtype(), [&]<class T>() { map<bool, T, T>(functors::name{}, out, a, b); }); \
  }

WEFT_ARITHMETIC(add)
WEFT_ARITHMETIC(sub)
WEFT_ARITHMETIC(mul)
WEFT_ARITHMETIC(div)
WEFT_ARITHMETIC(maximum)
WEFT_ARITHMETIC(minimum)
WEFT_FUNCTION(pow)
WEFT_FUNCTION(chain)
WEFT_FUNCTION(chain_div)
WEFT_FUNCTION(sqrt_grad)
WEFT_FUNCTION(rsqrt_grad)
WEFT_FUNCTION(relu_grad)
WEFT_FUNCTION(sigmoid_grad)
WEFT_FUNCTION(tanh_grad)
WEFT_FUNCTION(gelu_grad)
WEFT_FUNCTION(gelu_tanh_grad)
WEFT_FUNCTION(silu_grad)
WEFT_COMPARISON(eq)
WEFT_COMPARISON(ne)
WEFT_COMPARISON(lt)
WEFT_COMPARISON(le)
WEFT_COMPARISON(gt)
WEFT_COMPARISON(ge)

}  // namespace weft::cpu_kernels
