// Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011), the diagonal version.
#pragma once

#include "optim/optimizer.h"

namespace weft::optim {

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;      ///< step t runs with lr / (1 + (t - 1) · lr_decay)
  double weight_decay = 0;  ///< L2
  double initial_accumulator_value = 0;
  double eps = 1e-10;  ///< added to the root
};

/// s = s + g², p -= lr · g / (√s + eps). State: sum.
class Adagrad : public OptimizerOf<AdagradOptions> {
 public:
  explicit Adagrad(std::vector<Named> parameters, const AdagradOptions& options = {})
      : Adagrad(one_group(std::move(parameters), options)) {}
  explicit Adagrad(std::vector<Group<AdagradOptions>> groups);

 protected:
  std::vector<Field> fields(size_t group) override;
  void check(size_t group) const override;
  std::vector<Slot> slots(size_t group) const override;
  void update(size_t group, const Batch& batch) override;
};

}  // namespace weft::optim
