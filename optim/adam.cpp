// Adam and AdamW: one kernel, which adds weight decay to the gradient or takes it from the parameter.
#include "optim/adam.h"

#include <cmath>

#include "tensor/kernels.h"

namespace weft::optim {
namespace {

template <class Options>
std::vector<Optimizer::Field> fields_of(Options& o) {
  return {
      {"lr", o.lr},          {"beta1", o.beta1}, {"beta2", o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay},
      {"amsgrad", o.amsgrad}};
}

template <class Options>
void check_options(const char* name, const Options& o) {
  check_not_negative(name, "lr", o.lr);
  check_fraction(name, "beta1", o.beta1);
  check_fraction(name, "beta2", o.beta2);
  check_not_negative(name, "eps", o.eps);
  check_not_negative(name, "weight_decay", o.weight_decay);
}

std::vector<Optimizer::Slot> slots_of(bool amsgrad) {
  if (amsgrad) return {{"exp_avg"}, {"exp_avg_sq"}, {"max_exp_avg_sq"}};
  return {{"exp_avg"}, {"exp_avg_sq"}};
}

template <class Options>
void run(const Options& o, double l2, double decay, const Optimizer::Batch& batch) {
  const auto t = static_cast<double>(batch.step);
  const AdamArgs args{.lr = o.lr,
                      .beta1 = o.beta1,
                      .beta2 = o.beta2,
                      .eps = o.eps,
                      .l2 = l2,
                      .decay = decay,
                      .correction1 = 1 - std::pow(o.beta1, t),
                      .correction2 = 1 - std::pow(o.beta2, t),
                      .max_norm = batch.max_norm};
  kernels::adam_step(batch.params, batch.grads, batch.state[0], batch.state[1],
                     o.amsgrad ? std::span<const Tensor>(batch.state[2]) : std::span<const Tensor>(), batch.copies,
                     batch.squared_norm, args);
}

}  // namespace

Adam::Adam(std::vector<Group<AdamOptions>> groups) : OptimizerOf("adam", std::move(groups)) { check_all(); }
std::vector<Optimizer::Field> Adam::fields(size_t group) { return fields_of(options_[group]); }
void Adam::check(size_t group) const { check_options(name(), options_[group]); }
std::vector<Optimizer::Slot> Adam::slots(size_t group) const { return slots_of(options_[group].amsgrad); }
void Adam::update(size_t group, const Batch& batch) { run(options_[group], options_[group].weight_decay, 1, batch); }

AdamW::AdamW(std::vector<Group<AdamWOptions>> groups) : OptimizerOf("adamw", std::move(groups)) { check_all(); }
std::vector<Optimizer::Field> AdamW::fields(size_t group) { return fields_of(options_[group]); }
void AdamW::check(size_t group) const { check_options(name(), options_[group]); }
std::vector<Optimizer::Slot> AdamW::slots(size_t group) const { return slots_of(options_[group].amsgrad); }
void AdamW::update(size_t group, const Batch& batch) {
  const AdamWOptions& o = options_[group];
  run(o, 0, 1 - o.lr * o.weight_decay, batch);
}

}  // namespace weft::optim
