// Rows of a table by their number.
#pragma once

#include "nn/module.h"

namespace weft::nn {

/// Ids [..] of i32 or i64 → [.., width]; weight [rows, width], drawn from a normal distribution of mean 0. The row
/// `padding_idx`, where it is 0 or more, gets no gradient and is 0: at the start, after `reset_parameters` and after
/// `init`. Writing into `weight` itself goes past that. `sparse`: the weight gets a row gradient, and optimizers step
/// the rows that the batch named, alone (optim/optimizer.h).
class Embedding : public Module {
 public:
  struct Options {
    int64_t rows = 0, width = 0;
    int64_t padding_idx = -1;
    bool sparse = false;
    double deviation = 1;  ///< of the first weights
  };
  explicit Embedding(Options options);
  Tensor forward(const Tensor& ids) override;

  const Options options;
  Tensor& weight;

 protected:
  void reset_own_parameters() override;
  void after_init() override;
};

}  // namespace weft::nn
