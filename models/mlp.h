// Linear layers with ReLU between them.
#pragma once

#include <vector>

#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/sequential.h"

namespace weft::models {

struct MlpOptions {
  std::vector<int64_t> sizes = {784, 256, 128, 10};  ///< input, hidden layers, output
  double dropout = 0;                                ///< after each hidden layer; 0 leaves it out
};

/// Flattens all but the batch, then Linear → ReLU (→ Dropout) for each hidden size, then Linear. 235,146 parameters
/// with the sizes given.
struct MLP : nn::Sequential {
  using Options = MlpOptions;
  explicit MLP(Options o = {}) {
    WEFT_CHECK(o.sizes.size() >= 2, "mlp", "wants two sizes or more, got {}", o.sizes.size());
    add<nn::Flatten>("flatten");
    for (size_t i = 1; i < o.sizes.size(); ++i) {
      const bool last = i + 1 == o.sizes.size();
      add<nn::Linear>(
          fmt::format("fc{}", i),
          {.in = o.sizes[i - 1], .out = o.sizes[i], .activation = last ? Activation::none : Activation::relu});
      if (!last && o.dropout > 0) add<nn::Dropout>(fmt::format("drop{}", i), {.p = o.dropout});
    }
  }
};

}  // namespace weft::models
