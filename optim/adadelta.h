// Adadelta (Zeiler, 2012, arXiv:1212.5701, algorithm 1), with a learning rate before its update.
#pragma once

#include "optim/optimizer.h"

namespace weft::optim {

struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;         ///< of both means of squares, in [0, 1)
  double eps = 1e-6;        ///< inside both roots
  double weight_decay = 0;  ///< L2
};

/// v = rho · v + (1 - rho) g², d = g √(u + eps) / √(v + eps), u = rho · u + (1 - rho) d², p -= lr · d.
/// State: square_avg (v) and acc_delta (u).
class Adadelta : public OptimizerOf<AdadeltaOptions> {
 public:
  explicit Adadelta(std::vector<Named> parameters, const AdadeltaOptions& options = {})
      : Adadelta(one_group(std::move(parameters), options)) {}
  explicit Adadelta(std::vector<Group<AdadeltaOptions>> groups);

 protected:
  std::vector<Field> fields(size_t group) override;
  void check(size_t group) const override;
  std::vector<Slot> slots(size_t group) const override;
  void update(size_t group, const Batch& batch) override;
};

}  // namespace weft::optim
