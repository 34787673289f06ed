// Dropout as a module.
#pragma once

#include "autograd/ops/dropout.h"
#include "nn/module.h"

namespace weft::nn {

/// While training, each element is 0 with probability p and the others are divided by 1 - p; in evaluation, x
/// (Srivastava et al., "Dropout", JMLR 2014).
class Dropout : public Module {
 public:
  struct Options {
    double p = 0.5;
  };
  Dropout() : Dropout(Options{}) {}
  explicit Dropout(Options o) : options(o) {
    WEFT_CHECK(o.p >= 0 && o.p <= 1, "dropout", "the probability {} does not lie in [0, 1]", o.p);
  }
  Tensor forward(const Tensor& x) override { return dropout(x, options.p, training()); }

  const Options options;
};

}  // namespace weft::nn
