// Stochastic gradient descent with momentum (Polyak, 1964; in the form of Sutskever et al., ICML 2013, with the
// learning rate outside of the momentum buffer), Nesterov's variant, and L2 weight decay.
#pragma once

#include "optim/optimizer.h"

namespace weft::optim {

struct SgdOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;     ///< of the gradient's share in the momentum buffer, from the second step on
  double weight_decay = 0;  ///< L2: weight_decay · p is added to the gradient
  bool nesterov = false;    ///< wants momentum above 0 and no dampening
};

/// b = momentum · b + (1 - dampening) g, and b = g at the first step; p -= lr · b, with Nesterov
/// p -= lr · (g + momentum · b). State: momentum_buffer where momentum is not 0.
class SGD : public OptimizerOf<SgdOptions> {
 public:
  explicit SGD(std::vector<Named> parameters, const SgdOptions& options = {})
      : SGD(one_group(std::move(parameters), options)) {}
  explicit SGD(std::vector<Group<SgdOptions>> groups);

 protected:
  std::vector<Field> fields(size_t group) override;
  void check(size_t group) const override;
  std::vector<Slot> slots(size_t group) const override;
  void update(size_t group, const Batch& batch) override;
};

}  // namespace weft::optim
