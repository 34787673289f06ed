// A bidirectional LSTM that classifies texts: a logit for each.
#pragma once

#include "autograd/ops/elementwise.h"
#include "autograd/ops/index.h"
#include "autograd/ops/reduce.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/rnn.h"

namespace weft::models {

struct TextLstmOptions {
  int64_t vocabulary = 20000, width = 128, hidden = 64;
  double dropout = 0.3;
  bool sparse = false;  ///< the embedding's gradient by rows
};

/// Ids [N, L], padded with 0 on the left → Embedding → Dropout → LSTM both ways → the last states of both → Dropout →
/// Linear → logits [N, 1]. Texts run from their end to their begin, so that the padding comes last and `lengths` leaves
/// it out; with both directions that is no loss.
struct TextLstm : nn::Module {
  using Options = TextLstmOptions;
  explicit TextLstm(const Options& o = {})
      : embedding(add<nn::Embedding>("embedding", {.rows = o.vocabulary, .width = o.width, .sparse = o.sparse})),
        drop1(add<nn::Dropout>("drop1", {.p = o.dropout})),
        lstm(add<nn::LSTM>("lstm", {.in = o.width, .hidden = o.hidden, .bidirectional = true})),
        drop2(add<nn::Dropout>("drop2", {.p = o.dropout})),
        fc(add<nn::Linear>("fc", {.in = 2 * o.hidden, .out = 1})) {}

  Tensor forward(const Tensor& ids) override {
    const Tensor lengths = sum(ne(ids, 0), {1});
    const auto [y, h, c] = lstm(drop1(embedding(flip(ids, 1))), lengths);
    return fc(drop2(cat({h.select(0, 0), h.select(0, 1)}, 1)));
  }

  nn::Embedding& embedding;
  nn::Dropout& drop1;
  nn::LSTM& lstm;
  nn::Dropout& drop2;
  nn::Linear& fc;
};

}  // namespace weft::models
