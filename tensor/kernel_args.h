// Arguments of kernels that are more than a tensor or a number.
#pragma once

#include <array>
#include <cstdint>

namespace weft {

/// What a matrix product or convolution applies to its result.
enum class Activation : uint8_t { none, relu, gelu, gelu_tanh };

/// Two sizes, of height and width; one number stands for both.
struct Pair {
  int64_t h = 1, w = 1;
  constexpr Pair(int64_t both) : h(both), w(both) {}
  constexpr Pair(int64_t h, int64_t w) : h(h), w(w) {}
  bool operator==(const Pair&) const = default;
};

/// How a convolution's window moves.
struct ConvParameters {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
};

/// Windows of pooling: output o covers the input from o · stride − padding on, cut off at the input's edges.
struct PoolWindow {
  Pair kernel = 1, stride = 1, padding = 0;
  bool count_padding = true;  // average: padding counts as zeros, but not what a window of ceil_mode has beyond it
};

/// How queries attend to keys. With `causal` query t of T sees the keys up to t + S - T of S. A share `dropout` of the
/// probabilities is dropped.
struct AttentionParameters {
  double scale = 1;
  bool causal = false;
  double dropout = 0;
};

/// Rotary positions: position p turns pair i of the D / 2 by p · base^(-2i / D). Pairs are elements 2i and 2i + 1 where
/// interleaved, else i and i + D / 2.
struct RotaryParameters {
  double base = 10000;
  int64_t offset = 0;  // position of the first
  bool interleaved = false;
};

/// What becomes of the losses of single elements or rows.
enum class Reduction : uint8_t { none, mean, sum };

/// A loss over rows of class scores and a label each. The mean is over the weights of the labels that count.
struct LabelLoss {
  int64_t ignore_index = -100;
  double smoothing = 0;
  Reduction reduction = Reduction::mean;
};

/// A loss of two numbers; `delta` is where huber turns from a parabola into a line.
struct PairLoss {
  enum Kind : uint8_t { squared, absolute, huber, logistic } kind = squared;
  double delta = 1;
};

// Hyperparameters of the optimizer kernels: what depends on the step is a number here.

struct SgdArgs {
  double lr, momentum, dampening, weight_decay;
  bool nesterov;
};

/// Adam and AdamW: `l2` adds to the gradient, `decay` multiplies the parameter first (1 - lr · weight decay, or 1);
/// corrections are 1 - beta^step.
struct AdamArgs {
  double lr, beta1, beta2, eps, l2, decay, correction1, correction2, max_norm;
};

struct RmspropArgs {
  double lr, alpha, eps, weight_decay, momentum;
};

struct AdagradArgs {
  double lr, eps, weight_decay;
};

struct AdadeltaArgs {
  double lr, rho, eps, weight_decay;
};

}  // namespace weft
