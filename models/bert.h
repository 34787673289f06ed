// BERT: Devlin et al., "BERT: pre-training of deep bidirectional Transformers for language understanding", NAACL 2019.
#pragma once

#include <string>

#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"

namespace weft::models {

struct BertOptions {
  int64_t vocabulary = 30522;
  int64_t length = 512;  ///< most positions of a text
  int64_t types = 2;     ///< of tokens: which of two sentences
  int64_t width = 768, heads = 12, layers = 12, hidden = 3072;
  double dropout = 0.1;
  double eps = 1e-12;
  bool pooler = true;

  static BertOptions base() { return {}; }
  static BertOptions large() { return {.width = 1024, .heads = 16, .layers = 24, .hidden = 4096}; }
  /// Parameters of such a model, without building it: 109,482,240 (base) and 335,141,888 (large); 108,891,648 and
  /// 334,092,288 without the pooler.
  int64_t parameters() const;
};

/// A linear layer with BERT's first weights: normal of deviation 0.02, bias 0.
class BertLinear : public nn::Linear {
 public:
  explicit BertLinear(Options options) : nn::Linear(options) { BertLinear::reset_own_parameters(); }

 protected:
  void reset_own_parameters() override;
};

/// The end of both parts of a layer: norm(x + dropout(dense(h))).
struct BertOutput : nn::Module {
  struct Options {
    int64_t in = 0, width = 0;
    double dropout = 0, eps = 0;
  };
  explicit BertOutput(Options options);
  Tensor operator()(const Tensor& x, const Tensor& h);

  const Options options;
  BertLinear& dense;
  nn::LayerNorm& norm;
};

/// Token ids [B, T] → what the last layer says of each, [B, T, width]. Names of parameters are those of Hugging Face's
/// BertModel: embeddings.word_embeddings.weight, encoder.layer.0.attention.self.query.weight, …, pooler.dense.bias.
class Bert : public nn::Module {
 public:
  using Options = BertOptions;
  explicit Bert(Options options = {});
  ~Bert() override;

  /// All tokens are of type 0 and none is padding.
  Tensor forward(const Tensor& ids) override;
  using nn::Module::operator();
  /// mask: boolean [B, T], true for real tokens, or undefined; types: ids [B, T] below options.types, undefined: 0.
  Tensor operator()(const Tensor& ids, const Tensor& mask, const Tensor& types = {});
  /// What the pooler makes of the first token of `forward`'s result: [B, width].
  Tensor pooled(const Tensor& hidden);
  /// Loads a .safetensors file by name, with or without the prefix "bert."; heads in it are left out.
  void load_pretrained(const std::string& path);
  /// The table of token vectors, for heads that share it.
  const Tensor& word_embeddings() const;

  const Options options;

 private:
  struct Embeddings;
  struct Encoder;
  struct Pooler;
  Tensor run(const Tensor& ids, const Tensor& mask, const Tensor& types);
  Embeddings& embeddings_;
  Encoder& encoder_;
  Pooler* pooler_ = nullptr;
};

/// BERT with the head it was trained with: logits [B, T, vocabulary] of masked tokens, by weights shared with the
/// embedding. Names are those of Hugging Face's BertForMaskedLM.
class BertForMaskedLm : public nn::Module {
 public:
  using Options = BertOptions;
  /// Without the pooler whatever the options say.
  explicit BertForMaskedLm(Options options = {});
  ~BertForMaskedLm() override;
  Tensor forward(const Tensor& ids) override;
  using nn::Module::operator();
  Tensor operator()(const Tensor& ids, const Tensor& mask, const Tensor& types = {});
  void load_pretrained(const std::string& path);

  Bert& bert;

 private:
  struct Head;
  Tensor logits(const Tensor& hidden);
  Head& cls_;
};

}  // namespace weft::models
