// GPT-2: Radford et al., "Language models are unsupervised multitask learners", 2019.
#pragma once

#include <string>

#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/norm.h"
#include "nn/sequential.h"

namespace weft::models {

struct Gpt2Options {
  int64_t vocabulary = 50257;
  int64_t length = 1024;  ///< most positions of a text
  int64_t width = 768, heads = 12, layers = 12;
  double dropout = 0.1;
  double eps = 1e-5;

  static Gpt2Options small() { return {}; }
  static Gpt2Options medium() { return {.width = 1024, .heads = 16, .layers = 24}; }
  static Gpt2Options large() { return {.width = 1280, .heads = 20, .layers = 36}; }
  static Gpt2Options xl() { return {.width = 1600, .heads = 25, .layers = 48}; }
  /// Parameters of such a model, without building it: 124,439,808, 354,823,168, 774,030,080 and 1,557,611,200.
  int64_t parameters() const;
};

/// A linear layer whose weight is [in, out], as GPT-2's files have it.
class Gpt2Linear : public nn::Module {
 public:
  struct Options {
    int64_t in = 0, out = 0;
    double deviation = 0.02;  ///< of the first weights; the bias starts at 0
    Activation activation = Activation::none;
  };
  explicit Gpt2Linear(Options options);
  Tensor forward(const Tensor& x) override;
  /// residual + dropout(forward(x)) in one pass behind the product.
  Tensor add_to(const Tensor& residual, const Tensor& x, double dropout);

  const Options options;
  Tensor& weight;
  Tensor& bias;

 protected:
  void reset_own_parameters() override;
};

/// One block: x + attention(norm(x)), then that + two linear layers of its norm.
class Gpt2Block : public nn::Module {
 public:
  using Options = Gpt2Options;
  explicit Gpt2Block(Options options);
  Tensor forward(const Tensor& x) override;

 private:
  struct Attention : nn::Module {
    explicit Attention(const Gpt2Options& o);
    Gpt2Linear &c_attn, &c_proj;
  };
  struct Mlp : nn::Module {
    explicit Mlp(const Gpt2Options& o);
    Gpt2Linear &c_fc, &c_proj;
  };
  const Options options_;
  nn::LayerNorm& ln_1_;
  Attention& attn_;
  nn::LayerNorm& ln_2_;
  Mlp& mlp_;
};

/// Token ids [B, T] → logits [B, T, vocabulary] of the token after each. The head's weights are the embedding's. Names
/// of parameters are those of Hugging Face's files: wte.weight, wpe.weight, h.0.attn.c_attn.weight, …, ln_f.weight.
class Gpt2 : public nn::Module {
 public:
  using Options = Gpt2Options;
  explicit Gpt2(Options options = {});
  Tensor forward(const Tensor& ids) override;
  /// What the head gets: [B, T, width].
  Tensor hidden(const Tensor& ids);
  /// Loads a .safetensors file by name, with or without the prefix "transformer."; a head of its own is left out.
  void load_pretrained(const std::string& path);

  const Options options;
  nn::Embedding& wte;
  nn::LearnedPositions& wpe;
  nn::Sequential& h;
  nn::LayerNorm& ln_f;
};

}  // namespace weft::models
