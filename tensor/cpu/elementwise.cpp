// Elementwise functions of one operand, and `where`.
#include <atomic>
#include <cmath>

#include "tensor/cpu/loop.h"
#include "tensor/functors.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {

#include "tensor/elementwise_unary.def"

namespace {

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

}  // namespace

void sin(const Tensor& x, Tensor& out) {
  periodic(
      "sin", [](auto v) { return math::sin(v); }, functors::sin{}, x, out);
}
void cos(const Tensor& x, Tensor& out) {
  periodic(
      "cos", [](auto v) { return math::cos(v); }, functors::cos{}, x, out);
}

}  // namespace weft::cpu_kernels
