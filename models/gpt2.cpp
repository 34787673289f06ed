// GPT-2.
#include "models/gpt2.h"

#include <cmath>

#include "autograd/ops/attention.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/matmul.h"
#include "models/pretrained.h"
#include "nn/init.h"
#include "tensor/safetensors.h"

namespace weft::models {
namespace {

/// Of what is added to the residual stream: so that its variance does not grow with the depth.
double residual_deviation(const Gpt2Options& o) { return 0.02 / std::sqrt(2 * static_cast<double>(o.layers)); }

}  // namespace

int64_t Gpt2Options::parameters() const {
  const int64_t block = 12 * width * width + 13 * width;  // products; their biases and two norms
  return (vocabulary + length) * width + layers * block + 2 * width;
}

Gpt2Linear::Gpt2Linear(Options o)
    : options(o), weight(parameter("weight", empty({o.in, o.out}))), bias(parameter("bias", empty({o.out}))) {
  Gpt2Linear::reset_own_parameters();
}

Tensor Gpt2Linear::forward(const Tensor& x) { return linear(x, weight.t(), bias, options.activation); }

Tensor Gpt2Linear::add_to(const Tensor& residual, const Tensor& x, double dropout) {
  Scope scope(scope_id());
  return dropout_add(linear(x, weight.t()), bias, residual, dropout, training());
}

void Gpt2Linear::reset_own_parameters() {
  nn::init::normal(weight, 0, options.deviation);
  nn::init::zeros(bias);
}

Gpt2Block::Attention::Attention(const Gpt2Options& o)
    : c_attn(add<Gpt2Linear>("c_attn", {.in = o.width, .out = 3 * o.width})),
      c_proj(add<Gpt2Linear>("c_proj", {.in = o.width, .out = o.width, .deviation = residual_deviation(o)})) {}

Gpt2Block::Mlp::Mlp(const Gpt2Options& o)
    : c_fc(add<Gpt2Linear>("c_fc", {.in = o.width, .out = 4 * o.width, .activation = Activation::gelu_tanh})),
      c_proj(add<Gpt2Linear>("c_proj", {.in = 4 * o.width, .out = o.width, .deviation = residual_deviation(o)})) {}

Gpt2Block::Gpt2Block(Options o)
    : options_(o),
      ln_1_(add<nn::LayerNorm>("ln_1", {.sizes = {o.width}, .eps = o.eps})),
      attn_(add<Attention>("attn", o)),
      ln_2_(add<nn::LayerNorm>("ln_2", {.sizes = {o.width}, .eps = o.eps})),
      mlp_(add<Mlp>("mlp", o)) {}

Tensor Gpt2Block::forward(const Tensor& x) {
  const double dropout = options_.dropout;
  const Tensor heads =
      self_attention(attn_.c_attn(ln_1_(x)), options_.heads, {.causal = true, .dropout = training() ? dropout : 0});
  const Tensor attended = attn_.c_proj.add_to(x, heads, dropout);
  return mlp_.c_proj.add_to(attended, mlp_.c_fc(ln_2_(attended)), dropout);
}

Gpt2::Gpt2(Options o)
    : options(o),
      wte(add<nn::Embedding>("wte", {.rows = o.vocabulary, .width = o.width, .deviation = 0.02})),
      wpe(add<nn::LearnedPositions>("wpe", {.length = o.length, .width = o.width})),
      h(add<nn::Sequential>("h")),
      ln_f(add<nn::LayerNorm>("ln_f", {.sizes = {o.width}, .eps = o.eps})) {
  WEFT_CHECK(o.heads > 0 && o.width % o.heads == 0, "gpt2", "{} heads do not divide a width of {}", o.heads, o.width);
  for (int64_t i = 0; i < o.layers; ++i) h.add<Gpt2Block>(std::to_string(i), o);
}

Tensor Gpt2::hidden(const Tensor& ids) {
  Scope scope(scope_id());
  WEFT_CHECK(ids.dim() == 2, "gpt2", "wants ids [B, T], got {}", str(ids.sizes()));
  return ln_f(h(dropout(wpe(wte(ids)), options.dropout, training())));
}

Tensor Gpt2::forward(const Tensor& ids) { return linear(hidden(ids), wte.weight); }

void Gpt2::load_pretrained(const std::string& path) {
  load_by_name(*this, load(path),
               {.prefixes = {"transformer."},
                .ignored_prefixes = {"lm_head."},
                .ignored_suffixes = {".attn.bias", ".attn.masked_bias"}});  // causal masks
}

}  // namespace weft::models
