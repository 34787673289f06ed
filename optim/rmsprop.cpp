// RMSprop.
#include "optim/rmsprop.h"

#include "tensor/kernels.h"

namespace weft::optim {

RMSprop::RMSprop(std::vector<Group<RmspropOptions>> groups) : OptimizerOf("rmsprop", std::move(groups)) { check_all(); }

std::vector<Optimizer::Field> RMSprop::fields(size_t group) {
  RmspropOptions& o = options_[group];
  return {{"lr", o.lr},
          {"alpha", o.alpha},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay},
          {"momentum", o.momentum},
          {"centered", o.centered}};
}

void RMSprop::check(size_t group) const {
  const RmspropOptions& o = options_[group];
  check_not_negative(name(), "lr", o.lr);
  check_fraction(name(), "alpha", o.alpha);
  check_not_negative(name(), "eps", o.eps);
  check_not_negative(name(), "weight_decay", o.weight_decay);
  check_not_negative(name(), "momentum", o.momentum);
}

std::vector<Optimizer::Slot> RMSprop::slots(size_t group) const {
  const RmspropOptions& o = options_[group];
  std::vector<Slot> out{{"square_avg"}};
  if (o.centered) out.push_back({"grad_avg"});
  if (o.momentum != 0) out.push_back({"momentum_buffer"});
  return out;
}

void RMSprop::update(size_t group, const Batch& batch) {
  const RmspropOptions& o = options_[group];
  const std::span<const Tensor> none;
  kernels::rmsprop_step(
      batch.params, batch.grads, batch.state[0], o.centered ? std::span(batch.state[1]) : none,
      o.momentum != 0 ? std::span(batch.state.back()) : none,
      {.lr = o.lr, .alpha = o.alpha, .eps = o.eps, .weight_decay = o.weight_decay, .momentum = o.momentum});
}

}  // namespace weft::optim
