// Layers of Transformers.
#include "nn/transformer.h"

#include "autograd/ops/dropout.h"
#include "autograd/ops/matmul.h"

namespace weft::nn {
namespace {

TransformerOptions completed(TransformerOptions o) {
  if (o.hidden == 0) o.hidden = 4 * o.width;
  return o;
}

MultiHeadAttention::Options attention_of(const TransformerOptions& o, bool causal) {
  return {.width = o.width, .heads = o.heads, .causal = causal, .dropout = o.dropout};
}

/// x + part(norm(x)), or norm(x + part(x)); `part` adds to its first argument.
template <class Part>
Tensor sublayer(const TransformerOptions& o, LayerNorm& norm, const Tensor& x, const Part& part) {
  return o.pre_norm ? part(x, norm(x)) : norm(part(x, x));
}

Tensor feed_forward(const TransformerOptions& o, Linear& linear1, Linear& linear2, const Tensor& x, const Tensor& in,
                    bool training) {
  return add_projected(x, linear2, dropout(linear1(in), o.dropout, training), o.dropout, training);
}

}  // namespace

Tensor add_projected(const Tensor& x, Linear& out, const Tensor& h, double dropout, bool training) {
  Scope scope(out.scope_id());
  return dropout_add(linear(h, out.weight), out.bias, x, dropout, training);
}

TransformerEncoderLayer::TransformerEncoderLayer(Options o)
    : options(completed(o)),
      self_attn(add<MultiHeadAttention>("self_attn", attention_of(options, options.causal))),
      linear1(add<Linear>("linear1", {.in = o.width, .out = options.hidden, .activation = o.activation})),
      linear2(add<Linear>("linear2", {.in = options.hidden, .out = o.width})),
      norm1(add<LayerNorm>("norm1", {.sizes = {o.width}, .eps = o.eps})),
      norm2(add<LayerNorm>("norm2", {.sizes = {o.width}, .eps = o.eps})) {}

Tensor TransformerEncoderLayer::operator()(const Tensor& x, const Tensor& mask) {
  Scope scope(scope_id());
  return run(x, mask);
}

Tensor TransformerEncoderLayer::run(const Tensor& x, const Tensor& mask) {
  const Tensor attended = sublayer(options, norm1, x, [&](const Tensor& to, const Tensor& in) {
    return add_projected(to, self_attn.out_proj, self_attn.self_heads(in, mask), options.dropout, training());
  });
  return sublayer(options, norm2, attended, [&](const Tensor& to, const Tensor& in) {
    return feed_forward(options, linear1, linear2, to, in, training());
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(Options o)
    : options(completed(o)),
      self_attn(add<MultiHeadAttention>("self_attn", attention_of(options, true))),
      multihead_attn(add<MultiHeadAttention>("multihead_attn", attention_of(options, false))),
      linear1(add<Linear>("linear1", {.in = o.width, .out = options.hidden, .activation = o.activation})),
      linear2(add<Linear>("linear2", {.in = options.hidden, .out = o.width})),
      norm1(add<LayerNorm>("norm1", {.sizes = {o.width}, .eps = o.eps})),
      norm2(add<LayerNorm>("norm2", {.sizes = {o.width}, .eps = o.eps})),
      norm3(add<LayerNorm>("norm3", {.sizes = {o.width}, .eps = o.eps})) {}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory, const DecoderMasks& masks) {
  Scope scope(scope_id());
  const Tensor own = sublayer(options, norm1, x, [&](const Tensor& to, const Tensor& in) {
    return add_projected(to, self_attn.out_proj, self_attn.self_heads(in, masks.own), options.dropout, training());
  });
  const Tensor attended = sublayer(options, norm2, own, [&](const Tensor& to, const Tensor& in) {
    return add_projected(to, multihead_attn.out_proj, multihead_attn.cross_heads(in, memory, masks.memory),
                         options.dropout, training());
  });
  return sublayer(options, norm3, attended, [&](const Tensor& to, const Tensor& in) {
    return feed_forward(options, linear1, linear2, to, in, training());
  });
}

}  // namespace weft::nn
