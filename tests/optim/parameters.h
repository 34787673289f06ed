// Parameters and gradients for the tests of optimizers.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "tensor/tensor.h"
#include "tensor/view.h"

namespace weft::testing {

inline Named parameter(const std::string& name, const Tensor& value) {
  Named p{name, raw::clone(value)};
  p.value.requires_grad_();
  return p;
}

/// A number in [-1, 1] that depends on all its arguments.
inline double value_at(int64_t i, int64_t tensor, int64_t step) {
  return std::sin(0.7 * static_cast<double>(i) + 1.3 * static_cast<double>(tensor) + 2.1 * static_cast<double>(step) +
                  0.1);
}

inline Tensor values(const Shape& sizes, DType dtype, int64_t tensor, int64_t step) {
  std::vector<double> v(static_cast<size_t>(sizes.numel()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = value_at(static_cast<int64_t>(i), tensor, step);
  return raw::to(from(v, sizes), dtype);
}

/// Parameters "p0", "p1", … of these sizes, in the state before step 1.
inline std::vector<Named> parameters(const std::vector<Shape>& sizes, DType dtype = f64, Device device = {}) {
  std::vector<Named> out;
  for (const Shape& s : sizes) {
    const auto k = static_cast<int64_t>(out.size());
    out.push_back(parameter(fmt::format("p{}", k), values(s, dtype, k, 0).to(device)));
  }
  return out;
}

inline void set_gradients(std::vector<Named>& parameters, int64_t step) {
  for (size_t k = 0; k < parameters.size(); ++k) {
    Tensor& p = parameters[k].value;
    p.set_grad(values(p.sizes(), p.dtype(), static_cast<int64_t>(k), step).to(p.device()));
  }
}

inline std::vector<double> flat(const std::vector<Named>& list) {
  std::vector<double> out;
  for (const Named& x : list)
    for (double v : x.value.to_vector<double>()) out.push_back(v);
  return out;
}

}  // namespace weft::testing
