// The convolutional net of the IMDB job: a logit for each text, 6,296,705 parameters.
#pragma once

#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/linear.h"

namespace weft::models {

struct TextCnnOptions {
  int64_t vocabulary = 20000, width = 300, channels = 256, kernel = 3;
  double dropout = 0.2;
  bool sparse = false;  ///< the embedding's gradient by rows
};

/// Ids [N, L] → Embedding → Dropout → Conv1d, ReLU, max-pool 2 and the maximum over time, in one op → Linear → ReLU →
/// Dropout → Linear → logits [N, 1].
struct TextCnn : nn::Module {
  using Options = TextCnnOptions;
  explicit TextCnn(const Options& o = {})
      : embedding(add<nn::Embedding>("embedding", {.rows = o.vocabulary, .width = o.width, .sparse = o.sparse})),
        drop1(add<nn::Dropout>("drop1", {.p = o.dropout})),
        conv(add<nn::Conv1dMax>("conv", {.in = o.width, .out = o.channels, .kernel = o.kernel, .pool = 2})),
        fc1(add<nn::Linear>("fc1", {.in = o.channels, .out = o.channels, .activation = Activation::relu})),
        drop2(add<nn::Dropout>("drop2", {.p = o.dropout})),
        fc2(add<nn::Linear>("fc2", {.in = o.channels, .out = 1})) {
    init([](const std::string& name, Tensor& value) {
      if (name == "embedding.weight")
        nn::init::uniform(value, -0.05, 0.05);
      else if (value.dim() > 1)
        nn::init::xavier_uniform(value);
      else
        nn::init::zeros(value);
    });
  }

  Tensor forward(const Tensor& ids) override {
    const Tensor x = drop1(embedding(ids));
    return fc2(drop2(fc1(conv(x.transpose(1, 2)))));
  }

  nn::Embedding& embedding;
  nn::Dropout& drop1;
  nn::Conv1dMax& conv;
  nn::Linear& fc1;
  nn::Dropout& drop2;
  nn::Linear& fc2;
};

}  // namespace weft::models
