// Adadelta.
#include "optim/adadelta.h"

#include "tensor/kernels.h"

namespace weft::optim {

Adadelta::Adadelta(std::vector<Group<AdadeltaOptions>> groups) : OptimizerOf("adadelta", std::move(groups)) {
  check_all();
}

std::vector<Optimizer::Field> Adadelta::fields(size_t group) {
  AdadeltaOptions& o = options_[group];
  return {{"lr", o.lr}, {"rho", o.rho}, {"eps", o.eps}, {"weight_decay", o.weight_decay}};
}

void Adadelta::check(size_t group) const {
  const AdadeltaOptions& o = options_[group];
  check_not_negative(name(), "lr", o.lr);
  check_fraction(name(), "rho", o.rho);
  check_not_negative(name(), "eps", o.eps);
  check_not_negative(name(), "weight_decay", o.weight_decay);
}

std::vector<Optimizer::Slot> Adadelta::slots(size_t) const { return {{"square_avg"}, {"acc_delta"}}; }

void Adadelta::update(size_t group, const Batch& batch) {
  const AdadeltaOptions& o = options_[group];
  kernels::adadelta_step(batch.params, batch.grads, batch.state[0], batch.state[1],
                         {.lr = o.lr, .rho = o.rho, .eps = o.eps, .weight_decay = o.weight_decay});
}

}  // namespace weft::optim
