// A small Transformer that classifies texts.
#pragma once

#include "nn/attention.h"
#include "nn/embedding.h"
#include "nn/transformer.h"

namespace weft::models {

struct TextTransformerOptions {
  int64_t vocabulary = 20000;  ///< ids below it; 0 is padding
  int64_t length = 400;        ///< most ids of a text
  int64_t width = 128, heads = 4, layers = 2, hidden = 256;
  double dropout = 0.1;
  int64_t classes = 1;  ///< logits of a text
  bool sparse = false;  ///< row gradients of the embedding
};

/// Ids [N, L] with 0 for padding (on either side) → logits [N, classes]: token vectors plus positions, encoder layers
/// that norm what they get, the mean over real tokens of the last norm, and a linear layer. A text of padding alone has
/// the mean 0.
class TextTransformer : public nn::Module {
 public:
  using Options = TextTransformerOptions;
  explicit TextTransformer(Options options = {});
  Tensor forward(const Tensor& ids) override;

  const Options options;
  nn::Embedding& embedding;
  nn::LearnedPositions& positions;
  nn::LayerNorm& norm;
  nn::Linear& fc;

 private:
  std::vector<nn::TransformerEncoderLayer*> layers_;
};

}  // namespace weft::models
