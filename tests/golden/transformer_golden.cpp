// Golden rows of attention, rotary positions and the layers of Transformers.
#include <gtest/gtest.h>

#include "autograd/ops/attention.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/rotary.h"
#include "nn/transformer.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

Tensor mask_of(const Tensor& x) { return ne(x, 0); }

/// Puts a row's first inputs in the places of a layer's parameters; returns those that follow.
Tensors set_parameters(const std::vector<Tensor*>& parameters, Inputs in) {
  size_t next = 0;
  for (Tensor* const p : parameters) {
    EXPECT_EQ(p->sizes(), in[next].sizes());
    *p = in[next++];
  }
  return {in.begin() + static_cast<std::ptrdiff_t>(next), in.end()};
}

std::vector<Tensor*> parameters_of(nn::MultiHeadAttention& a) {
  if (!a.options.bias) return {&a.in_proj_weight, &a.out_proj.weight};
  return {&a.in_proj_weight, &a.in_proj_bias, &a.out_proj.weight, &a.out_proj.bias};
}

template <class Layer>
void append(std::vector<Tensor*>& list, Layer& layer) {
  list.push_back(&layer.weight);
  list.push_back(&layer.bias);
}

nn::TransformerOptions layer_options(bool pre) {
  return {.width = 4,
          .heads = 2,
          .hidden = 6,
          .activation = pre ? Activation::gelu : Activation::relu,
          .dropout = 0,
          .pre_norm = pre};
}

Results encoder(Inputs in, bool pre) {
  nn::TransformerEncoderLayer layer(layer_options(pre));
  std::vector<Tensor*> own = parameters_of(layer.self_attn);
  append(own, layer.linear1);
  append(own, layer.linear2);
  append(own, layer.norm1);
  append(own, layer.norm2);
  const Tensors rest = set_parameters(own, in);
  return layer(rest[0], mask_of(rest[1]));
}

Results decoder(Inputs in, bool pre) {
  nn::TransformerDecoderLayer layer(layer_options(pre));
  std::vector<Tensor*> own = parameters_of(layer.self_attn);
  for (Tensor* const p : parameters_of(layer.multihead_attn)) own.push_back(p);
  append(own, layer.linear1);
  append(own, layer.linear2);
  append(own, layer.norm1);
  append(own, layer.norm2);
  append(own, layer.norm3);
  const Tensors rest = set_parameters(own, in);
  return layer(rest[0], rest[1]);
}

template <class Call>
GoldenRow heads(const char* name, bool bias, const Call& call) {
  return {name, [=](Inputs in) -> Results {
            nn::MultiHeadAttention layer({.width = 4, .heads = 2, .bias = bias});
            return call(layer, set_parameters(parameters_of(layer), in));
          }};
}

TEST(Golden, transformer) {
  using Layer = nn::MultiHeadAttention;
  const auto plain = [](Layer& layer, Inputs x) { return layer(x[0]); };
  check_golden(
      "transformer",
      {
          {"attention/plain", [](Inputs in) { return attention(in[0], in[1], in[2]); }},
          {"attention/causal", [](Inputs in) { return attention(in[0], in[1], in[2], {.causal = true}); }},
          {"attention/causal_more_keys", [](Inputs in) { return attention(in[0], in[1], in[2], {.causal = true}); }},
          {"attention/padding", [](Inputs in) { return attention(in[0], in[1], in[2], {.mask = mask_of(in[3])}); }},
          {"attention/groups", [](Inputs in) { return attention(in[0], in[1], in[2], {.causal = true}); }},
          heads("heads/self", true, plain),
          heads("heads/padding", true, [](Layer& layer, Inputs x) { return layer.self(x[0], mask_of(x[1])); }),
          heads("heads/cross", true, [](Layer& layer, Inputs x) { return layer.cross(x[0], x[1]); }),
          heads("heads/no_bias", false, plain),
          {"encoder/post", [](Inputs in) { return encoder(in, false); }},
          {"encoder/pre_gelu", [](Inputs in) { return encoder(in, true); }},
          {"decoder/post", [](Inputs in) { return decoder(in, false); }},
          {"decoder/pre_gelu", [](Inputs in) { return decoder(in, true); }},
          {"rotary/halves", [](Inputs in) { return rotary(in[0]); }},
          {"rotary/interleaved", [](Inputs in) { return rotary(in[0], {.offset = 3, .interleaved = true}); }},
      });
}

}  // namespace
}  // namespace weft::testing
