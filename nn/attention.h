// Attention with several heads, and positions for it.
#pragma once

#include "nn/linear.h"

namespace weft::nn {

/// Heads of width / heads each attend on their own (Vaswani et al., "Attention is all you need", NIPS 2017). Sequences
/// are [B, T, width]; a mask is boolean [B, T] of the keys, true where they may be attended to, or undefined. One
/// product makes queries, keys and values. Names and layout are PyTorch's: in_proj_weight [3 · width, width] of
/// queries, keys and values, in_proj_bias, out_proj. Weights of in_proj are drawn by Glorot's rule, all biases are 0.
class MultiHeadAttention : public Module {
 public:
  struct Options {
    int64_t width = 0, heads = 0;
    bool causal = false;  ///< of self-attention: a position does not see later ones
    bool bias = true;
    double dropout = 0;  ///< of the probabilities while training
  };
  explicit MultiHeadAttention(Options options);

  /// Self-attention without a mask.
  Tensor forward(const Tensor& x) override { return self(x); }
  Tensor self(const Tensor& x, const Tensor& mask = {});
  /// Queries from x [B, T, width], keys and values from memory [B, S, width] with its mask [B, S]; never causal.
  Tensor cross(const Tensor& x, const Tensor& memory, const Tensor& mask = {});

  /// What out_proj gets, for layers that fuse it with what follows: the joined heads.
  Tensor self_heads(const Tensor& x, const Tensor& mask = {});
  Tensor cross_heads(const Tensor& x, const Tensor& memory, const Tensor& mask = {});

  const Options options;
  Tensor& in_proj_weight;
  Tensor& in_proj_bias;
  Linear& out_proj;

 protected:
  void reset_own_parameters() override;
};

/// x [B, T, width] + weight[0 … T): a trained vector for each position, drawn from a normal distribution of deviation
/// 0.02.
class LearnedPositions : public Module {
 public:
  struct Options {
    int64_t length = 0, width = 0;
  };
  explicit LearnedPositions(Options options);
  Tensor forward(const Tensor& x) override;

  const Options options;
  Tensor& weight;  // [length, width]

 protected:
  void reset_own_parameters() override;
};

}  // namespace weft::nn
