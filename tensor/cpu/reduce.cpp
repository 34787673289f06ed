// Reductions; sums accumulate in double.
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {

void sum(const Tensor& x, Tensor& out) {
  Tensor total = zeros(out.sizes(), DType::f64);
  double* t = total.data<double>();
  const Tensor values = raw::contiguous(raw::to(x, DType::f64));
  const double* v = values.data<double>();
  const Shape dense = contiguous_strides(out.sizes());
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t to = 0;
    for (int64_t d = x.dim() - 1, rest = i; d >= 0; rest /= x.sizes()[d], --d)
      if (out.sizes()[d] != 1) to += rest % x.sizes()[d] * dense[d];
    t[to] += v[i];
  }
  copy(total, out);
}

}  // namespace weft::cpu_kernels
