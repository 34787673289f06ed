// How far two tensors are apart.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/tensor.h"

namespace weft {

/// Σ |a - b| / Σ |b|; 0 where they are equal.
inline double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.sizes(), b.sizes());
  if (!(a.sizes() == b.sizes())) return INFINITY;
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double difference = 0, size = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    difference += std::fabs(x[i] - y[i]);
    size += std::fabs(y[i]);
  }
  return difference == 0 ? 0 : difference / size;
}

}  // namespace weft
