// Initialisers: values are drawn into a new row-major tensor and copied in.
#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops/elementwise.h"
#include "tensor/kernels.h"
#include "tensor/random.h"

namespace weft::nn::init {
namespace {

void set(Tensor& x, const Tensor& values) {
  NoGrad no_grad;
  x.copy_(values.to(x.device()));
}

void check_floating(const char* what, const Tensor& x) {
  WEFT_CHECK(is_floating(x.dtype()), what, "wants a floating tensor, got {}", name(x.dtype()));
}

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

/// Φ⁻¹(p): Winitzki's closed form for the inverse error function as a start, then Newton steps on log Φ, which is
/// concave and nearly quadratic in the lower tail.
double inverse_normal(double p) {
  const double l = std::log(4 * p * (1 - p)), a = 0.147;
  const double b = 2 / (std::numbers::pi * a) + l / 2;
  double x = std::copysign(std::sqrt(2 * (std::sqrt(b * b - l / a) - b)), p - 0.5);
  for (int step = 0; step < 3; ++step) {
    const double distribution = normal_distribution(x);
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    x -= std::log(distribution / p) * distribution / density;
  }
  return x;
}

double fan_of(const Tensor& weight, Fan fan) {
  const Fans f = fans(weight);
  return static_cast<double>(fan == Fan::in ? f.in : f.out);
}

}  // namespace

double gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid:
      return 1;
    case Nonlinearity::tanh:
      return 5.0 / 3;
    case Nonlinearity::relu:
      return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu:
      return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu:
      return 0.75;
  }
  return 1;
}

Fans fans(const Tensor& weight) {
  WEFT_CHECK(weight.dim() >= 2, "init", "fan in and fan out need two dimensions or more, the tensor is {}",
             str(weight.sizes()));
  int64_t kernel = 1;
  for (int64_t i = 2; i < weight.dim(); ++i) kernel *= weight.sizes()[i];
  return {weight.sizes()[1] * kernel, weight.sizes()[0] * kernel};
}

void constant(Tensor x, double value) {
  NoGrad no_grad;
  x.fill_(value);
}
void zeros(Tensor x) { constant(x, 0); }
void ones(Tensor x) { constant(x, 1); }

void uniform(Tensor x, double low, double high) {
  check_floating("uniform", x);
  WEFT_CHECK(low <= high, "uniform", "the interval [{}, {}) is empty", low, high);
  Tensor values = empty(x.sizes(), {x.dtype(), x.device()});
  kernels::uniform(values, low, high, default_generator().take(x.numel()));
  set(x, values);
}

void normal(Tensor x, double mean, double deviation) {
  check_floating("normal", x);
  WEFT_CHECK(deviation >= 0, "normal", "the deviation {} is below 0", deviation);
  Tensor values = empty(x.sizes(), {x.dtype(), x.device()});
  kernels::normal(values, mean, deviation, default_generator().take(x.numel()));
  set(x, values);
}

void truncated_normal(Tensor x, double mean, double deviation, double low, double high) {
  check_floating("truncated_normal", x);
  WEFT_CHECK(deviation > 0 && low < high, "truncated_normal",
             "wants a deviation above 0 and low < high, got {}, {} and {}", deviation, low, high);
  // In the upper half, 1 - Φ keeps the digits that Φ has lost: the interval is mirrored to lie mostly below the mean.
  double a = (low - mean) / deviation, b = (high - mean) / deviation;
  const bool mirror = a + b > 0;
  if (mirror) std::swap(a, b), a = -a, b = -b;
  const double from = normal_distribution(a), to = normal_distribution(b);
  WEFT_CHECK(to > from, "truncated_normal", "[{}, {}] lies too far from the mean {} for deviation {}", low, high, mean,
             deviation);
  Tensor values = empty(x.sizes(), f64);
  kernels::uniform(values, from, to, default_generator().take(x.numel()));
  double* v = values.data<double>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double z = v[i] <= 0 ? a : inverse_normal(v[i]);
    v[i] = std::clamp(mean + deviation * (mirror ? -z : z), low, high);
  }
  set(x, values);
}

void xavier_uniform(Tensor weight, double gain) {
  const Fans f = fans(weight);
  const double bound = gain * std::sqrt(6.0 / static_cast<double>(f.in + f.out));
  uniform(weight, -bound, bound);
}

void xavier_normal(Tensor weight, double gain) {
  const Fans f = fans(weight);
  normal(weight, 0, gain * std::sqrt(2.0 / static_cast<double>(f.in + f.out)));
}

void kaiming_uniform(Tensor weight, KaimingOptions options) {
  const double bound = gain(options.nonlinearity, options.slope) * std::sqrt(3 / fan_of(weight, options.fan));
  uniform(weight, -bound, bound);
}

void kaiming_normal(Tensor weight, KaimingOptions options) {
  normal(weight, 0, gain(options.nonlinearity, options.slope) / std::sqrt(fan_of(weight, options.fan)));
}

void orthogonal(Tensor weight, double gain) {
  check_floating("orthogonal", weight);
  WEFT_CHECK(weight.dim() >= 2, "orthogonal", "wants two dimensions or more, the tensor is {}", str(weight.sizes()));
  const int64_t rows = weight.sizes()[0], columns = rows > 0 ? weight.numel() / rows : 0;
  const int64_t count = std::min(rows, columns), length = std::max(rows, columns);
  Tensor vectors = empty({count, length}, f64);
  kernels::normal(vectors, 0, 1, default_generator().take(vectors.numel()));
  // Gram and Schmidt, each vector cleared twice of those before it: once leaves rounding errors that grow with the
  // number of vectors. The diagonal of R is positive, which makes the result uniform.
  double* v = vectors.data<double>();
  const auto dot = [length](const double* a, const double* b) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (int64_t j = 0; j < count; ++j) {
    double* x = v + j * length;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < j; ++k) {
        const double* q = v + k * length;
        const double along = dot(x, q);
        for (int64_t i = 0; i < length; ++i) x[i] -= along * q[i];
      }
    const double norm = std::sqrt(dot(x, x));
    for (int64_t i = 0; i < length; ++i) x[i] /= norm;
  }
  NoGrad no_grad;
  const Tensor scaled = vectors * gain;
  set(weight, (rows <= columns ? scaled : scaled.t()).reshape(weight.sizes()));
}

void fan_in_uniform(Tensor weight, Tensor bias) {
  const double bound = 1 / std::sqrt(static_cast<double>(fans(weight).in));
  uniform(weight, -bound, bound);
  if (bias.defined()) uniform(bias, -bound, bound);
}

}  // namespace weft::nn::init
