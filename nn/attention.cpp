// Attention with several heads, and positions for it.
#include "nn/attention.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "nn/init.h"

namespace weft::nn {
namespace {

/// Options checked before a weight is allocated from them.
const MultiHeadAttention::Options& checked(const MultiHeadAttention::Options& o) {
  WEFT_CHECK(o.width > 0 && o.heads > 0 && o.width % o.heads == 0, "attention",
             "wants a width that its heads divide, got .width {} and .heads {}", o.width, o.heads);
  WEFT_CHECK(o.dropout >= 0 && o.dropout <= 1, "attention", "the probability {} does not lie in [0, 1]", o.dropout);
  return o;
}
const LearnedPositions::Options& checked(const LearnedPositions::Options& o) {
  WEFT_CHECK(o.length > 0 && o.width > 0, "positions", "wants .length and .width above 0, got {} and {}", o.length,
             o.width);
  return o;
}

void check_sequence(const char* what, const Tensor& x, int64_t width) {
  WEFT_CHECK(x.dim() == 3 && x.size(2) == width, "attention", "wants {} [B, T, {}], got {}", what, width,
             str(x.sizes()));
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(Options o)
    : options(checked(o)),
      in_proj_weight(parameter("in_proj_weight", empty({3 * o.width, o.width}))),
      in_proj_bias(parameter("in_proj_bias", o.bias ? empty({3 * o.width}) : Tensor())),
      out_proj(add<Linear>("out_proj", {.in = o.width, .out = o.width, .bias = o.bias})) {
  MultiHeadAttention::reset_own_parameters();
}

void MultiHeadAttention::reset_own_parameters() {
  init::xavier_uniform(in_proj_weight);
  if (!options.bias) return;
  init::zeros(in_proj_bias);
  init::zeros(out_proj.bias);
}

Tensor MultiHeadAttention::self_heads(const Tensor& x, const Tensor& mask) {
  Scope scope(scope_id());
  check_sequence("x", x, options.width);
  return self_attention(linear(x, in_proj_weight, in_proj_bias), options.heads,
                        {.causal = options.causal, .mask = mask, .dropout = training() ? options.dropout : 0});
}

Tensor MultiHeadAttention::cross_heads(const Tensor& x, const Tensor& memory, const Tensor& mask) {
  Scope scope(scope_id());
  check_sequence("x", x, options.width);
  check_sequence("memory", memory, options.width);
  const int64_t width = options.width, heads = options.heads;
  const auto product = [&](const Tensor& y, int64_t part, int64_t parts) {
    const Tensor bias = options.bias ? in_proj_bias.narrow(0, part * width, parts * width) : Tensor();
    return linear(y, in_proj_weight.narrow(0, part * width, parts * width), bias)
        .reshape({y.size(0), y.size(1), parts, heads, width / heads});
  };
  const Tensor q = product(x, 0, 1), k_and_v = product(memory, 1, 2);
  const Tensor y =
      attention(q.select(2, 0).transpose(1, 2), k_and_v.select(2, 0).transpose(1, 2),
                k_and_v.select(2, 1).transpose(1, 2), {.mask = mask, .dropout = training() ? options.dropout : 0});
  return y.transpose(1, 2).flatten(2);
}

Tensor MultiHeadAttention::self(const Tensor& x, const Tensor& mask) { return out_proj(self_heads(x, mask)); }

Tensor MultiHeadAttention::cross(const Tensor& x, const Tensor& memory, const Tensor& mask) {
  return out_proj(cross_heads(x, memory, mask));
}

LearnedPositions::LearnedPositions(Options o)
    : options(checked(o)), weight(parameter("weight", empty({o.length, o.width}))) {
  LearnedPositions::reset_own_parameters();
}

Tensor LearnedPositions::forward(const Tensor& x) {
  WEFT_CHECK(x.dim() == 3 && x.size(1) <= options.length && x.size(2) == options.width, "positions",
             "wants [B, T, {}] with at most {} positions, got {}", options.width, options.length, str(x.sizes()));
  return x + (x.size(1) == options.length ? weight : weight.narrow(0, 0, x.size(1)));
}

void LearnedPositions::reset_own_parameters() { init::normal(weight, 0, 0.02); }

}  // namespace weft::nn
