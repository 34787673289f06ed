// Convolution layers. Images are [N, C, H, W], sequences [N, C, L].
#pragma once

#include "nn/module.h"
#include "tensor/kernel_args.h"

namespace weft::nn {

/// Cross-correlation with a fused activation; weight [out, in / groups, kernel.h, kernel.w], bias [out], both drawn
/// uniformly from ±1 / √(in / groups · kernel.h · kernel.w).
class Conv2d : public Module {
 public:
  struct Options {
    int64_t in = 0, out = 0;
    Pair kernel = 0;
    Pair stride = 1, padding = 0, dilation = 1;
    int64_t groups = 1;
    bool bias = true;
    Activation activation = Activation::none;
  };
  explicit Conv2d(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;
  Tensor& bias;

 protected:
  void reset_own_parameters() override;
};

/// The same over a sequence; weight [out, in / groups, kernel].
class Conv1d : public Module {
 public:
  struct Options {
    int64_t in = 0, out = 0;
    int64_t kernel = 0;
    int64_t stride = 1, padding = 0, dilation = 1;
    int64_t groups = 1;
    bool bias = true;
    Activation activation = Activation::none;
  };
  explicit Conv1d(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;
  Tensor& bias;

 protected:
  void reset_own_parameters() override;
};

/// The maximum over time of relu(conv1d(x)), after a max pooling of `pool`, as one op that never stores the
/// convolution's output (conv1d_max): x [N, in, L] → [N, out]. Weight and bias are those of a Conv1d, in name, shape
/// and first values, so either loads the other's state.
class Conv1dMax : public Module {
 public:
  struct Options {
    int64_t in = 0, out = 0;
    int64_t kernel = 0;
    int64_t pool = 1;
    bool bias = true;
  };
  explicit Conv1dMax(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;
  Tensor& bias;

 protected:
  void reset_own_parameters() override;
};

}  // namespace weft::nn
