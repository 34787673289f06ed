// Adagrad.
#include "optim/adagrad.h"

#include "tensor/kernels.h"

namespace weft::optim {

Adagrad::Adagrad(std::vector<Group<AdagradOptions>> groups) : OptimizerOf("adagrad", std::move(groups)) { check_all(); }

std::vector<Optimizer::Field> Adagrad::fields(size_t group) {
  AdagradOptions& o = options_[group];
  return {{"lr", o.lr},
          {"lr_decay", o.lr_decay},
          {"weight_decay", o.weight_decay},
          {"initial_accumulator_value", o.initial_accumulator_value},
          {"eps", o.eps}};
}

void Adagrad::check(size_t group) const {
  const AdagradOptions& o = options_[group];
  check_not_negative(name(), "lr", o.lr);
  check_not_negative(name(), "lr_decay", o.lr_decay);
  check_not_negative(name(), "weight_decay", o.weight_decay);
  check_not_negative(name(), "initial_accumulator_value", o.initial_accumulator_value);
  check_not_negative(name(), "eps", o.eps);
}

std::vector<Optimizer::Slot> Adagrad::slots(size_t group) const {
  return {{"sum", options_[group].initial_accumulator_value}};
}

void Adagrad::update(size_t group, const Batch& batch) {
  const AdagradOptions& o = options_[group];
  const double lr = o.lr / (1 + static_cast<double>(batch.step - 1) * o.lr_decay);
  kernels::adagrad_step(batch.params, batch.grads, batch.state[0],
                        {.lr = lr, .eps = o.eps, .weight_decay = o.weight_decay});
}

}  // namespace weft::optim
