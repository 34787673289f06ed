// Cases of the elementwise ops.
#include "autograd/ops/elementwise.h"

#include <cmath>
#include <numbers>

#include "tensor/kernels.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

OpCase unary(const char* name, Tensor (*op)(const Tensor&), double (*f)(double), In in = {{3, 5, 7}}) {
  return {.name = name,
          .inputs = {in},
          .run = [op](const Tensors& x) { return op(x[0]); },
          .reference =
              [f](const Refs& x) {
                Ref y(x[0].sizes);
                for (int64_t i = 0; i < y.numel(); ++i) y[i] = f(x[0][i]);
                return y;
              },
          .dtypes = {f32, f64, bf16, f16},
          .bench = {In{{1 << 20}, In::floating, in.low, in.high}}};
}

/// Operands [4, 1, 3] and [5, 1]: both are stretched.
OpCase binary(const char* name, Tensor (*op)(const Tensor&, const Tensor&), double (*f)(double, double),
              double low = -2) {
  return {.name = name,
          .inputs = {{{4, 1, 3}, In::floating, low}, {{5, 1}, In::floating, low}},
          .run = [op](const Tensors& x) { return op(x[0], x[1]); },
          .reference =
              [f](const Refs& x) {
                Ref y({4, 5, 3});
                for (int64_t i = 0; i < 4; ++i)
                  for (int64_t j = 0; j < 5; ++j)
                    for (int64_t k = 0; k < 3; ++k) y(i, j, k) = f(x[0](i, 0, k), x[1](j, 0));
                return y;
              },
          .dtypes = {f32, f64, bf16, f16},
          .bench = {In{{1 << 20}, In::floating, low}, In{{1 << 20}, In::floating, low}}};
}

/// A comparison, of whole numbers so that some are equal; what it gives has no gradient.
OpCase comparison(const char* name, Tensor (*op)(const Tensor&, const Tensor&), bool (*f)(double, double)) {
  OpCase c = binary(name, op, nullptr);
  c.inputs = {In::indices({4, 1, 3}, 3), In::indices({5, 1}, 3)};
  c.reference = [f](const Refs& x) {
    Ref y({4, 5, 3});
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 5; ++j)
        for (int64_t k = 0; k < 3; ++k) y(i, j, k) = f(x[0](i, 0, k), x[1](j, 0));
    return y;
  };
  c.gradient = false;
  c.dtypes = {f32};
  return c;
}

OpCase without_gradient(OpCase c) {
  c.gradient = false;
  return c;
}

/// activation(x + bias) along dimension 1 of three, as what products end with.
OpCase bias_activation(const char* name, Activation activation) {
  return {.name = name,
          .inputs = {{{4, 6, 5}}, {{6}}},
          .run =
              [activation](const Tensors& x) {
                Tensor y = empty_like(x[0]);
                kernels::bias_activation(x[0], x[1], 1, activation, y);
                return y;
              },
          .reference =
              [activation](const Refs& x) {
                Ref y({4, 6, 5});
                for (int64_t i = 0; i < y.numel(); ++i) y[i] = x[0][i] + x[1][i / 5 % 6];
                for (double& v : y.values) v = activated(activation, v);
                return y;
              },
          .gradient = false,
          .dtypes = {f32, f64, bf16, f16}};
}

}  // namespace

OpCases elementwise_cases() {
  const In smooth_at_zero{.sizes = {3, 5, 7}, .away_from_zero = true};
  return {
      unary("neg", neg, [](double x) { return -x; }),
      unary(
          "abs", abs, [](double x) { return std::fabs(x); }, smooth_at_zero),
      unary("square", square, [](double x) { return x * x; }),
      unary("exp", exp, [](double x) { return std::exp(x); }),
      unary(
          "log", log, [](double x) { return std::log(x); }, In::positive({3, 5, 7})),
      unary(
          "sqrt", sqrt, [](double x) { return std::sqrt(x); }, In::positive({3, 5, 7})),
      unary(
          "rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }, In::positive({3, 5, 7})),
      unary("sin", sin, [](double x) { return std::sin(x); }),
      unary("cos", cos, [](double x) { return std::cos(x); }),
      unary("erf", erf, [](double x) { return std::erf(x); }),
      unary("sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }),
      unary("tanh", tanh, [](double x) { return std::tanh(x); }),
      unary("gelu", gelu, [](double x) { return activated(Activation::gelu, x); }),
      unary("gelu_tanh", gelu_tanh, [](double x) { return activated(Activation::gelu_tanh, x); }),
      unary("silu", silu, [](double x) { return x / (1 + std::exp(-x)); }),
      unary("softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }),
      unary(
          "relu", [](const Tensor& x) { return relu(x); }, [](double x) { return x > 0 ? x : 0; }, smooth_at_zero),
      unary(
          "leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); },
          [](double x) { return x > 0 ? x : 0.1 * x; }, smooth_at_zero),
      unary(
          "clamp", [](const Tensor& x) { return clamp(x, -0.7, 1.1); },
          [](double x) { return std::fmin(std::fmax(x, -0.7), 1.1); }, In{.sizes = {3, 5, 7}, .distinct = true}),
      unary(
          "pow/number", [](const Tensor& x) { return pow(x, 3); }, [](double x) { return x * x * x; }),
      unary(
          "affine", [](const Tensor& x) { return 1 - x * 3; }, [](double x) { return 1 - 3 * x; }),
      binary("add", add, [](double a, double b) { return a + b; }),
      binary("sub", sub, [](double a, double b) { return a - b; }),
      binary("mul", mul, [](double a, double b) { return a * b; }),
      binary(
          "div", div, [](double a, double b) { return a / b; }, 0.5),
      binary(
          "pow", pow, [](double a, double b) { return std::pow(a, b); }, 0.5),
      binary("maximum", maximum, [](double a, double b) { return std::fmax(a, b); }),
      binary("minimum", minimum, [](double a, double b) { return std::fmin(a, b); }),
      without_gradient(unary("sign", sign, [](double x) { return static_cast<double>((x > 0) - (x < 0)); })),
      comparison("eq", eq, [](double a, double b) { return a == b; }),
      comparison("ne", ne, [](double a, double b) { return a != b; }),
      comparison("lt", lt, [](double a, double b) { return a < b; }),
      comparison("le", le, [](double a, double b) { return a <= b; }),
      comparison("gt", gt, [](double a, double b) { return a > b; }),
      comparison("ge", ge, [](double a, double b) { return a >= b; }),
      {.name = "where",
       .inputs = {In::booleans({4, 3}), {{4, 3}}, {{3}}},
       .run = [](const Tensors& x) { return where(x[0], x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             Ref y({4, 3});
             for (int64_t i = 0; i < 12; ++i) y[i] = x[0][i] != 0 ? x[1][i] : x[2][i % 3];
             return y;
           }},
      bias_activation("bias_activation/none", Activation::none),
      bias_activation("bias_activation/relu", Activation::relu),
      bias_activation("bias_activation/gelu", Activation::gelu),
      bias_activation("bias_activation/gelu_tanh", Activation::gelu_tanh),
  };
}

}  // namespace weft::testing
