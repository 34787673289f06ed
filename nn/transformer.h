// Layers of Transformers. Names of parameters are those of PyTorch's layers of the same names.
#pragma once

#include "nn/attention.h"
#include "nn/norm.h"

namespace weft::nn {

struct TransformerOptions {
  int64_t width = 0, heads = 0;
  int64_t hidden = 0;  ///< of the two linear layers; 0: 4 · width
  Activation activation = Activation::relu;
  double dropout = 0.1;   ///< of probabilities, of what linear1 gives and of what is added to x
  bool pre_norm = false;  ///< normalises what a part gets, not what it leaves (Xiong et al., ICML 2020)
  bool causal = false;    ///< of an encoder layer: makes it the layer of a language model
  double eps = 1e-5;      ///< of the norms
};

/// y = x + dropout(out(h)) in one pass behind the product: how the parts of a layer end.
Tensor add_projected(const Tensor& x, Linear& out, const Tensor& h, double dropout, bool training);

/// Self-attention, then two linear layers with an activation between them, each added to what it got (Vaswani et al.,
/// "Attention is all you need", NIPS 2017). x [B, T, width]; mask: boolean [B, T], true where a position may be
/// attended to.
class TransformerEncoderLayer : public Module {
 public:
  using Options = TransformerOptions;
  explicit TransformerEncoderLayer(Options options);
  Tensor forward(const Tensor& x) override { return run(x, {}); }
  using Module::operator();
  Tensor operator()(const Tensor& x, const Tensor& mask);

  const Options options;
  MultiHeadAttention& self_attn;
  Linear& linear1;
  Linear& linear2;
  LayerNorm& norm1;
  LayerNorm& norm2;

 private:
  Tensor run(const Tensor& x, const Tensor& mask);
};

/// Boolean, true where a position may be attended to; undefined: all.
struct DecoderMasks {
  Tensor own = {};     ///< [B, T] of x
  Tensor memory = {};  ///< [B, S]
};

/// Causal self-attention, attention to an encoder's result, then two linear layers.
class TransformerDecoderLayer : public Module {
 public:
  using Options = TransformerOptions;
  explicit TransformerDecoderLayer(Options options);
  /// x [B, T, width], memory [B, S, width].
  Tensor operator()(const Tensor& x, const Tensor& memory, const DecoderMasks& masks = {});

  const Options options;
  MultiHeadAttention& self_attn;
  MultiHeadAttention& multihead_attn;
  Linear& linear1;
  Linear& linear2;
  LayerNorm& norm1;
  LayerNorm& norm2;
  LayerNorm& norm3;
};

}  // namespace weft::nn
