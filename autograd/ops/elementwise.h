// Elementwise operations. Operands broadcast by numpy's rule and must share dtype and device. A gradient of 0 stays 0
// on its way back through any of them, also where the slope is infinite: log at 0 in a branch that `where` did not
// take.
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft {

Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
/// Whole numbers truncate toward zero and refuse a zero divisor; out of range they wrap, as in all arithmetic here.
Tensor div(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& a, const Tensor& b);
Tensor pow(const Tensor& x, double exponent);
/// The larger operand, NaN where either is; equal operands share the gradient half and half.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
/// x · scale + shift.
Tensor affine(const Tensor& x, double scale, double shift);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
// With a number, which takes the tensor's dtype and must fit it.
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);

Tensor neg(const Tensor& x);
Tensor abs(const Tensor& x);
Tensor square(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sigmoid(const Tensor& x);
Tensor tanh(const Tensor& x);
/// max(x, 0). Works in x's own memory where x is a temporary that nothing else can see.
Tensor relu(Tensor x);
/// At 0 the gradient is `slope`, as relu's is 0.
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
/// Exact, by the error function.
Tensor gelu(const Tensor& x);
/// The approximation by tanh.
Tensor gelu_tanh(const Tensor& x);
/// What a matrix product or convolution with this activation ends with.
Tensor activate(Tensor x, Activation activation);
Tensor silu(const Tensor& x);
/// log(1 + e^x).
Tensor softplus(const Tensor& x);
/// At the bounds themselves the gradient is 0.
Tensor clamp(const Tensor& x, double low, double high);
/// -1, 0 or 1; no gradient.
Tensor sign(const Tensor& x);

/// condition ? a : b, element by element; the gradient of the branch not taken is zero, even where it is NaN.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

// Comparisons: boolean, no gradient.
Tensor eq(const Tensor& a, const Tensor& b);
Tensor ne(const Tensor& a, const Tensor& b);
Tensor lt(const Tensor& a, const Tensor& b);
Tensor le(const Tensor& a, const Tensor& b);
Tensor gt(const Tensor& a, const Tensor& b);
Tensor ge(const Tensor& a, const Tensor& b);
Tensor eq(const Tensor& a, double b);
Tensor ne(const Tensor& a, double b);
Tensor lt(const Tensor& a, double b);
Tensor le(const Tensor& a, double b);
Tensor gt(const Tensor& a, double b);
Tensor ge(const Tensor& a, double b);

/// The number as a tensor of x's dtype and device; throws where it is not whole or out of range for a whole-number x.
Tensor number_like(const Tensor& x, double value);
/// x summed over the dimensions that broadcasting added or stretched, back to `sizes`. No gradient: for gradient rules.
Tensor sum_to(const Tensor& x, const Shape& sizes);

}  // namespace weft
