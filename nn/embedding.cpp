// Rows of a table by their number.
#include "nn/embedding.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/embedding.h"
#include "nn/init.h"

namespace weft::nn {
namespace {

/// Options checked before a weight is allocated from them.
const Embedding::Options& checked(const Embedding::Options& o) {
  WEFT_CHECK(o.rows > 0 && o.width > 0, "embedding", "wants .rows and .width above 0, got {} and {}", o.rows, o.width);
  WEFT_CHECK(o.padding_idx >= -1 && o.padding_idx < o.rows, "embedding", "padding_idx {} is not one of {} rows",
             o.padding_idx, o.rows);
  return o;
}

}  // namespace

Embedding::Embedding(Options o) : options(checked(o)), weight(parameter("weight", empty({o.rows, o.width}))) {
  Embedding::reset_own_parameters();
}

Tensor Embedding::forward(const Tensor& ids) { return embedding(weight, ids, options.padding_idx, options.sparse); }

void Embedding::reset_own_parameters() {
  init::normal(weight, 0, options.deviation);
  Embedding::after_init();
}

void Embedding::after_init() {
  if (options.padding_idx < 0) return;
  NoGrad no_grad;
  weight.select(0, options.padding_idx).zero_();
}

}  // namespace weft::nn
