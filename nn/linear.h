// Fully connected layers.
#pragma once

#include "nn/module.h"
#include "tensor/kernel_args.h"

namespace weft::nn {

/// y = activation(x · weightᵀ + bias) over the last dimension; weight [out, in], bias [out], both drawn uniformly from
/// ±1 / √in.
class Linear : public Module {
 public:
  struct Options {
    int64_t in = 0, out = 0;
    bool bias = true;
    Activation activation = Activation::none;
  };
  explicit Linear(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;
  Tensor& bias;

 protected:
  void reset_own_parameters() override;
};

}  // namespace weft::nn
