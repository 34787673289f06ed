// Normalisation layers: weights start at 1, biases at 0.
#pragma once

#include "nn/module.h"

namespace weft::nn {

/// What BatchNorm1d and BatchNorm2d share: each channel of [N, C, …] to mean 0 and variance 1, over the batch while
/// training and by running averages in evaluation, then weight · x + bias (Ioffe and Szegedy, "Batch normalization",
/// ICML 2015). Training needs more than one value a channel. Buffers: running_mean, running_var (unbiased).
class BatchNorm : public Module {
 public:
  struct Options {
    int64_t channels = 0;
    double momentum = 0.1;  ///< share of the newest batch in the running averages
    double eps = 1e-5;
  };
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;
  Tensor& bias;
  Tensor& running_mean;
  Tensor& running_var;

 protected:
  BatchNorm(const char* op, int64_t fewest, int64_t most, Options options);
  /// Running averages stay f32 beside 16-bit parameters: small steps would be lost.
  DType buffer_dtype(DType parameters) const override { return parameters == f64 ? f64 : f32; }
  /// The running averages start again as well.
  void reset_own_parameters() override;

 private:
  const char* op_;
  int64_t fewest_, most_;  // dimensions of the input
};

/// Of [N, C] or [N, C, L].
class BatchNorm1d : public BatchNorm {
 public:
  explicit BatchNorm1d(Options options) : BatchNorm("batch_norm1d", 2, 3, options) {}
};

/// Of [N, C, H, W].
class BatchNorm2d : public BatchNorm {
 public:
  explicit BatchNorm2d(Options options) : BatchNorm("batch_norm2d", 4, 4, options) {}
};

/// The last dimensions, as many as `sizes` has, to mean 0 and variance 1, then weight · x + bias (Ba, Kiros and Hinton,
/// "Layer normalization", 2016).
class LayerNorm : public Module {
 public:
  struct Options {
    Shape sizes = {};
    double eps = 1e-5;
  };
  explicit LayerNorm(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;
  Tensor& bias;

 protected:
  void reset_own_parameters() override;
};

/// The last dimensions divided by their root mean square, then weight · x (Zhang and Sennrich, "Root mean square layer
/// normalization", NeurIPS 2019).
class RMSNorm : public Module {
 public:
  struct Options {
    Shape sizes = {};
    double eps = 1e-6;
  };
  explicit RMSNorm(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;

 protected:
  void reset_own_parameters() override;
};

/// Each group of neighbouring channels of [N, C, …] to mean 0 and variance 1 within one sample, then weight · x + bias
/// by channel (Wu and He, "Group normalization", ECCV 2018).
class GroupNorm : public Module {
 public:
  struct Options {
    int64_t groups = 0, channels = 0;
    double eps = 1e-5;
  };
  explicit GroupNorm(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;
  Tensor& bias;

 protected:
  void reset_own_parameters() override;
};

}  // namespace weft::nn
