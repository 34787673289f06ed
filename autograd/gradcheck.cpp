// Gradient rules against central differences, in f64.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/random.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// A scalar that depends on every element of the output with its own weight.
double weighted_sum(const Tensor& y, const std::vector<double>& weights) {
  const std::vector<double> values = y.to_vector<double>();
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) total += values[i] * weights[i];
  return total;
}

std::vector<double> make_weights(int64_t n) {
  std::vector<double> weights;
  for (int64_t i = 0; i < n; ++i) {
    const PhiloxBlock b = philox(0x67726164, static_cast<uint64_t>(i));
    weights.push_back(0.5 + to_unit_double(b[0], b[1]));
  }
  return weights;
}

}  // namespace

GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs) {
    Tensor copy = raw::clone(is_floating(x.dtype()) ? raw::to(x, DType::f64) : x);
    if (is_floating(x.dtype())) copy.requires_grad_();
    leaves.push_back(copy);
  }
  const EnableGrad enable;
  const Tensor y = f(leaves);
  WEFT_CHECK(y.dtype() == DType::f64, "gradcheck", "the function must give f64 for f64 inputs, it gave {}",
             name(y.dtype()));
  const std::vector<double> weights = make_weights(y.numel());
  if (y.requires_grad()) backward({y}, {from(weights, y.sizes()).to(y.device())});

  GradcheckResult result;
  double worst = 0;
  const NoGrad no_grad;
  for (size_t k = 0; k < leaves.size(); ++k) {
    Tensor& x = leaves[k];
    if (!is_floating(x.dtype())) continue;
    const Tensor grad = x.grad();
    const std::vector<double> analytic =
        grad.defined() ? grad.to_vector<double>() : std::vector<double>(static_cast<size_t>(x.numel()), 0.0);
    const std::vector<double> centre = x.to_vector<double>();
    auto value_at = [&](size_t i, double v) {
      std::vector<double> moved = centre;
      moved[i] = v;
      const Tensor at = from(moved, x.sizes()).to(x.device());
      x.copy_(at);
      return weighted_sum(f(leaves), weights);
    };
    for (size_t i = 0; i < centre.size(); ++i) {
      const double h = options.step * std::max(1.0, std::fabs(centre[i]));
      const double numeric = (value_at(i, centre[i] + h) - value_at(i, centre[i] - h)) / (2 * h);
      const double error = std::fabs(numeric - analytic[i]);
      const double allowed = options.absolute + options.relative * std::max(std::fabs(numeric), std::fabs(analytic[i]));
      const double excess = std::isfinite(error) ? error / allowed : std::numeric_limits<double>::infinity();
      if (excess > 1 && excess > worst) {
        worst = excess;
        result = {false, fmt::format("input {}, element {} at {}: the rule gives {}, differences give {}", k, i,
                                     centre[i], analytic[i], numeric)};
      }
    }
    x.copy_(from(centre, x.sizes()).to(x.device()));
  }
  return result;
}

}  // namespace weft
