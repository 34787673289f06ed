// Elementwise functions of one operand, and `where`.
#include <atomic>
#include <cmath>

#include "tensor/cpu/loop.h"
#include "tensor/functors.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {
namespace {

template <class F>
void unary_floating(const char* op, const F& f, const Tensor& x, Tensor& out) {
  dispatch_floating(op, x.dtype(), [&]<class T>() { map<T, T>(f, out, x); });
}
template <class F>
void unary_any(const F& f, const Tensor& x, Tensor& out) {
  dispatch(x.dtype(), [&]<class T>() { map<T, T>(f, out, x); });
}
/// A function of angles: `quick` where all are below its limit, else `exact`.
template <class Quick, class Exact>
void periodic(const char* op, const Quick& quick, const Exact& exact, const Tensor& x, Tensor& out) {
  dispatch_floating(op, x.dtype(), [&]<class T>() {
    std::atomic<bool> small{true};
    Loop<1>({&x}).run([from = x.data<T>(), &small](int64_t n, const auto& at, const auto& step) {
      int large = 0;
      for (int64_t i = 0; i < n; ++i) large += std::fabs(load(from[at[0] + i * step[0]])) > math::kSinLimit;
      if (large > 0) small = false;
    });
    if (small)
      map<T, T>(quick, out, x);
    else
      map<T, T>(exact, out, x);
  });
}

template <class F>
void grad_with_parameters(const char* op, const F& f, const Tensor& dy, const Tensor& x, Tensor& dx) {
  dispatch_floating(op, x.dtype(), [&]<class T>() { map<T, T, T>(f, dx, dy, x); });
}

}  // namespace

#define WEFT_ARITHMETIC(name) \
  void name(const Tensor& x, Tensor& out) { unary_any(functors::name{}, x, out); }
#define WEFT_FUNCTION(name) \
  void name(const Tensor& x, Tensor& out) { unary_floating(#name, functors::name{}, x, out); }

WEFT_ARITHMETIC(neg)
WEFT_ARITHMETIC(abs)
WEFT_ARITHMETIC(square)
WEFT_ARITHMETIC(sign)
WEFT_ARITHMETIC(relu)
WEFT_FUNCTION(exp)
WEFT_FUNCTION(log)
WEFT_FUNCTION(sqrt)
WEFT_FUNCTION(rsqrt)
WEFT_FUNCTION(erf)
WEFT_FUNCTION(sigmoid)
WEFT_FUNCTION(tanh)
WEFT_FUNCTION(gelu)
WEFT_FUNCTION(gelu_tanh)
WEFT_FUNCTION(silu)
WEFT_FUNCTION(softplus)

void affine(const Tensor& x, double scale, double shift, Tensor& out) {
  unary_floating("affine", functors::affine{scale, shift}, x, out);
}
void sin(const Tensor& x, Tensor& out) {
  periodic(
      "sin", [](auto v) { return math::sin(v); }, functors::sin{}, x, out);
}
void cos(const Tensor& x, Tensor& out) {
  periodic(
      "cos", [](auto v) { return math::cos(v); }, functors::cos{}, x, out);
}
void pow_scalar(const Tensor& x, double exponent, Tensor& out) {
  if (exponent == 1) return copy(x, out);
  if (exponent == 2) return square(x, out);
  if (exponent == 3)
    return unary_floating(
        "pow", [](auto v) { return v * v * v; }, x, out);
  if (exponent == 4)
    return unary_floating(
        "pow", [](auto v) { return (v * v) * (v * v); }, x, out);
  unary_floating("pow", functors::pow_scalar{exponent}, x, out);
}
void clamp(const Tensor& x, double low, double high, Tensor& out) {
  unary_floating("clamp", functors::clamp{low, high}, x, out);
}
void leaky_relu(const Tensor& x, double slope, Tensor& out) {
  unary_floating("leaky_relu", functors::leaky_relu{slope}, x, out);
}

void leaky_relu_grad(const Tensor& dy, const Tensor& x, double slope, Tensor& dx) {
  grad_with_parameters("leaky_relu", functors::leaky_relu_grad{slope}, dy, x, dx);
}
void clamp_grad(const Tensor& dy, const Tensor& x, double low, double high, Tensor& dx) {
  grad_with_parameters("clamp", functors::clamp_grad{low, high}, dy, x, dx);
}

void where(const Tensor& condition, const Tensor& a, const Tensor& b, Tensor& out) {
  dispatch(out.dtype(), [&]<class T>() {
    map<T, bool, T, T>([](bool c, auto x, auto y) { return c ? x : y; }, out, condition, a, b);
  });
}

}  // namespace weft::cpu_kernels
