// A small Transformer that classifies texts.
#include "models/text_transformer.h"

#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"

namespace weft::models {

TextTransformer::TextTransformer(Options o)
    : options(o),
      embedding(add<nn::Embedding>(
          "embedding",
          {.rows = o.vocabulary, .width = o.width, .padding_idx = 0, .sparse = o.sparse, .deviation = 0.02})),
      positions(add<nn::LearnedPositions>("positions", {.length = o.length, .width = o.width})),
      norm(add<nn::LayerNorm>("norm", {.sizes = {o.width}})),
      fc(add<nn::Linear>("fc", {.in = o.width, .out = o.classes})) {
  for (int64_t i = 0; i < o.layers; ++i)
    layers_.push_back(&add<nn::TransformerEncoderLayer>("layer" + std::to_string(i), {.width = o.width,
                                                                                      .heads = o.heads,
                                                                                      .hidden = o.hidden,
                                                                                      .activation = Activation::gelu,
                                                                                      .dropout = o.dropout,
                                                                                      .pre_norm = true}));
}

Tensor TextTransformer::forward(const Tensor& ids) {
  WEFT_CHECK(ids.dim() == 2, "text_transformer", "wants ids [N, L], got {}", str(ids.sizes()));
  const Tensor mask = ne(ids, 0);
  Tensor x = dropout(positions(embedding(ids)), options.dropout, training());
  for (nn::TransformerEncoderLayer* const layer : layers_) x = (*layer)(x, mask);
  const Tensor y = norm(x), weights = mask.to(y.dtype());
  const Tensor count = clamp(sum(weights, {1}, true), 1, static_cast<double>(options.length));
  const Tensor total = matmul(weights.unsqueeze(1), y).squeeze(1);
  return fc(dropout(total / count, options.dropout, training()));
}

}  // namespace weft::models
