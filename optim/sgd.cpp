// SGD: dampening waits for the second step, when the momentum buffer holds a gradient.
#include "optim/sgd.h"

#include <cmath>

#include "tensor/kernels.h"

namespace weft::optim {

SGD::SGD(std::vector<Group<SgdOptions>> groups) : OptimizerOf("sgd", std::move(groups)) { check_all(); }

std::vector<Optimizer::Field> SGD::fields(size_t group) {
  SgdOptions& o = options_[group];
  return {{"lr", o.lr},
          {"momentum", o.momentum},
          {"dampening", o.dampening},
          {"weight_decay", o.weight_decay},
          {"nesterov", o.nesterov}};
}

void SGD::check(size_t group) const {
  const SgdOptions& o = options_[group];
  check_not_negative(name(), "lr", o.lr);
  check_not_negative(name(), "momentum", o.momentum);
  check_not_negative(name(), "weight_decay", o.weight_decay);
  WEFT_CHECK(std::isfinite(o.dampening), name(), "dampening must be finite, got {}", o.dampening);
  WEFT_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), name(),
             "nesterov wants momentum above 0 and dampening 0, got {} and {}", o.momentum, o.dampening);
}

std::vector<Optimizer::Slot> SGD::slots(size_t group) const {
  if (options_[group].momentum == 0) return {};
  return {{"momentum_buffer"}};
}

void SGD::update(size_t group, const Batch& batch) {
  const SgdOptions& o = options_[group];
  const SgdArgs args{.lr = o.lr,
                     .momentum = o.momentum,
                     .dampening = batch.step == 1 ? 0 : o.dampening,
                     .weight_decay = o.weight_decay,
                     .nesterov = o.nesterov};
  const bool buffered = o.momentum != 0;
  kernels::sgd_step(batch.params, batch.grads,
                    buffered ? std::span<const Tensor>(batch.state[0]) : std::span<const Tensor>(), args);
}

}  // namespace weft::optim
