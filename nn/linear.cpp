// Fully connected layers.
#include "nn/linear.h"

#include "autograd/ops/matmul.h"
#include "nn/init.h"

namespace weft::nn {
namespace {

/// Options checked before a weight is allocated from them.
const Linear::Options& checked(const Linear::Options& o) {
  WEFT_CHECK(o.in > 0 && o.out > 0, "linear", "wants .in and .out above 0, got {} and {}", o.in, o.out);
  return o;
}

}  // namespace

Linear::Linear(Options o)
    : options(checked(o)),
      weight(parameter("weight", empty({o.out, o.in}))),
      bias(parameter("bias", o.bias ? empty({o.out}) : Tensor())) {
  Linear::reset_own_parameters();
}

Tensor Linear::forward(const Tensor& x) { return linear(x, weight, bias, options.activation); }

void Linear::reset_own_parameters() { init::fan_in_uniform(weight, bias); }

}  // namespace weft::nn
