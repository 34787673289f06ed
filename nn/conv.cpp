// Convolution layers.
#include "nn/conv.h"

#include <algorithm>

#include "autograd/ops/conv.h"
#include "autograd/ops/conv_max.h"
#include "nn/init.h"

namespace weft::nn {
namespace {

// Options are checked before a weight is allocated from them.

void check_sizes(const char* op, int64_t in, int64_t out, int64_t kernel) {
  WEFT_CHECK(in > 0 && out > 0 && kernel > 0, op, "wants .in, .out and .kernel above 0, got {}, {} and {}", in, out,
             kernel);
}

template <class Options>
const Options& checked(const char* op, const Options& o, int64_t kernel) {
  check_sizes(op, o.in, o.out, kernel);
  WEFT_CHECK(o.groups > 0 && o.in % o.groups == 0 && o.out % o.groups == 0, op,
             "{} groups do not divide {} input and {} output channels", o.groups, o.in, o.out);
  return o;
}

const Conv1dMax::Options& checked(const Conv1dMax::Options& o) {
  check_sizes("conv1d_max", o.in, o.out, o.kernel);
  WEFT_CHECK(o.pool >= 1, "conv1d_max", "wants .pool of at least 1, got {}", o.pool);
  return o;
}

}  // namespace

Conv2d::Conv2d(Options o)
    : options(checked("conv2d", o, std::min(o.kernel.h, o.kernel.w))),
      weight(parameter("weight", empty({o.out, o.in / o.groups, o.kernel.h, o.kernel.w}))),
      bias(parameter("bias", o.bias ? empty({o.out}) : Tensor())) {
  Conv2d::reset_own_parameters();
}

Tensor Conv2d::forward(const Tensor& x) {
  return conv2d(x, weight, bias,
                {.stride = options.stride,
                 .padding = options.padding,
                 .dilation = options.dilation,
                 .groups = options.groups,
                 .activation = options.activation});
}

void Conv2d::reset_own_parameters() { init::fan_in_uniform(weight, bias); }

Conv1d::Conv1d(Options o)
    : options(checked("conv1d", o, o.kernel)),
      weight(parameter("weight", empty({o.out, o.in / o.groups, o.kernel}))),
      bias(parameter("bias", o.bias ? empty({o.out}) : Tensor())) {
  Conv1d::reset_own_parameters();
}

Tensor Conv1d::forward(const Tensor& x) {
  return conv1d(x, weight, bias,
                {.stride = options.stride,
                 .padding = options.padding,
                 .dilation = options.dilation,
                 .groups = options.groups,
                 .activation = options.activation});
}

void Conv1d::reset_own_parameters() { init::fan_in_uniform(weight, bias); }

Conv1dMax::Conv1dMax(Options o)
    : options(checked(o)),
      weight(parameter("weight", empty({o.out, o.in, o.kernel}))),
      bias(parameter("bias", o.bias ? empty({o.out}) : Tensor())) {
  Conv1dMax::reset_own_parameters();
}

Tensor Conv1dMax::forward(const Tensor& x) { return conv1d_max(x, weight, bias, {.pool = options.pool}); }

void Conv1dMax::reset_own_parameters() { init::fan_in_uniform(weight, bias); }

}  // namespace weft::nn
