// Activations as modules.
#pragma once

#include "autograd/ops/elementwise.h"
#include "autograd/ops/softmax.h"
#include "nn/module.h"

namespace weft::nn {

/// max(x, 0).
struct ReLU : Module {
  Tensor forward(const Tensor& x) override { return relu(x); }
};

/// x where x > 0, else slope · x.
struct LeakyReLU : Module {
  struct Options {
    double slope = 0.01;
  };
  LeakyReLU() : LeakyReLU(Options{}) {}
  explicit LeakyReLU(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return leaky_relu(x, options.slope); }
  const Options options;
};

/// x · Φ(x), exactly or by the tanh approximation (Hendrycks and Gimpel, "Gaussian error linear units", 2016).
struct GELU : Module {
  struct Options {
    bool tanh = false;
  };
  GELU() : GELU(Options{}) {}
  explicit GELU(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return options.tanh ? gelu_tanh(x) : gelu(x); }
  const Options options;
};

/// x · sigmoid(x).
struct SiLU : Module {
  Tensor forward(const Tensor& x) override { return silu(x); }
};

struct Tanh : Module {
  Tensor forward(const Tensor& x) override { return weft::tanh(x); }
};

struct Sigmoid : Module {
  Tensor forward(const Tensor& x) override { return sigmoid(x); }
};

/// e^x over its sum along one dimension.
struct Softmax : Module {
  struct Options {
    int64_t dim = -1;
  };
  Softmax() : Softmax(Options{}) {}
  explicit Softmax(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return softmax(x, options.dim); }
  const Options options;
};

/// Its logarithm.
struct LogSoftmax : Module {
  using Options = Softmax::Options;
  LogSoftmax() : LogSoftmax(Options{}) {}
  explicit LogSoftmax(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return log_softmax(x, options.dim); }
  const Options options;
};

}  // namespace weft::nn
