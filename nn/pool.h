// Pooling layers. Images are [N, C, H, W], sequences [N, C, L].
#pragma once

#include "autograd/ops/elementwise.h"
#include "autograd/ops/pool.h"
#include "nn/module.h"

namespace weft::nn {

/// Largest value of each window, then the activation: a ReLU in the same memory. A stride of 0 is the kernel.
class MaxPool2d : public Module {
 public:
  struct Options {
    Pair kernel = 2, stride = 0, padding = 0;
    bool ceil_mode = false;
    Activation activation = Activation::none;
  };
  MaxPool2d() : MaxPool2d(Options{}) {}
  explicit MaxPool2d(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override {
    Tensor y = max_pool2d(x, {.kernel = options.kernel,
                              .stride = options.stride,
                              .padding = options.padding,
                              .ceil_mode = options.ceil_mode});
    return activate(std::move(y), options.activation);
  }

  const Options options;
};

class MaxPool1d : public Module {
 public:
  struct Options {
    int64_t kernel = 2, stride = 0, padding = 0;
    bool ceil_mode = false;
    Activation activation = Activation::none;
  };
  MaxPool1d() : MaxPool1d(Options{}) {}
  explicit MaxPool1d(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override {
    Tensor y = max_pool1d(x, {.kernel = options.kernel,
                              .stride = options.stride,
                              .padding = options.padding,
                              .ceil_mode = options.ceil_mode});
    return activate(std::move(y), options.activation);
  }

  const Options options;
};

/// Mean of each window; `count_padding` says whether padded zeros count in it.
class AvgPool2d : public Module {
 public:
  using Options = Pool2dOptions;
  AvgPool2d() : AvgPool2d(Options{}) {}
  explicit AvgPool2d(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool2d(x, options); }

  const Options options;
};

class AvgPool1d : public Module {
 public:
  using Options = Pool1dOptions;
  AvgPool1d() : AvgPool1d(Options{}) {}
  explicit AvgPool1d(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return avg_pool1d(x, options); }

  const Options options;
};

/// Mean over all positions: [N, C, …] → [N, C].
struct GlobalAvgPool : Module {
  Tensor forward(const Tensor& x) override { return global_avg_pool(x); }
};

/// Largest value over all positions: [N, C, …] → [N, C].
struct GlobalMaxPool : Module {
  Tensor forward(const Tensor& x) override { return global_max_pool(x); }
};

}  // namespace weft::nn
