// Groups, steps and gradients of optimizers; their state dictionaries are in optim/state.cpp.
#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include "autograd/node.h"
#include "optim/clip.h"
#include "tensor/kernels.h"
#include "tensor/step_values.h"
#include "tensor/view.h"

namespace weft::optim {
namespace {

/// Where dimensions of size 1 do not count, the same order in memory.
bool same_order(const Tensor& a, const Tensor& b) {
  for (int64_t d = 0; d < a.dim(); ++d)
    if (a.sizes()[d] != 1 && a.strides()[d] != b.strides()[d]) return false;
  return true;
}

/// x's values in the order and on the device of a parameter.
Tensor like(const Tensor& parameter, const Tensor& x, DType dtype) {
  Tensor out = empty_like(parameter, dtype);
  kernels::copy(x.to(parameter.device()), out);
  return out;
}

/// The gradient as the kernels want it: dense, in the parameter's order.
Tensor matching(const Tensor& grad, const Tensor& parameter) {
  if (same_order(grad, parameter)) return grad;
  return like(parameter, grad, parameter.dtype());
}

void check_parameter(const char* optimizer, const Named& p) {
  WEFT_CHECK(p.value.defined(), optimizer, "parameter {} is undefined", p.name);
  WEFT_CHECK(is_floating(p.value.dtype()), optimizer, "parameter {} is {}, not floating", p.name,
             weft::name(p.value.dtype()));
  WEFT_CHECK(p.value.is_leaf(), optimizer, "parameter {} is the result of {}, not a leaf", p.name,
             node_of(p.value)->name());
  WEFT_CHECK(raw::is_dense(p.value), optimizer, "parameter {} {} is a view with gaps (strides {})", p.name,
             str(p.value.sizes()), str(p.value.strides()));
}

}  // namespace

void check_not_negative(const char* optimizer, const char* what, double value) {
  WEFT_CHECK(value >= 0 && std::isfinite(value), optimizer, "{} must be finite and at least 0, got {}", what, value);
}

void check_fraction(const char* optimizer, const char* what, double value) {
  WEFT_CHECK(value >= 0 && value < 1, optimizer, "{} must be in [0, 1), got {}", what, value);
}

void Optimizer::Field::set(double value) const {
  if (number)
    *number = value;
  else
    *flag = value != 0;
}

void Optimizer::add_group(const char* optimizer, std::vector<Named> parameters) {
  for (const Named& p : parameters) check_parameter(optimizer, p);
  Parameters group{std::move(parameters), {}};
  group.state.resize(group.named.size());
  groups_.push_back(std::move(group));

  const std::vector<Named> all = this->parameters();
  std::map<std::string_view, const Named*> names;
  std::map<std::pair<const Storage*, int64_t>, const Named*> memory;  // by end
  for (const Named& p : all) {
    WEFT_CHECK(names.emplace(p.name, &p).second, optimizer, "two parameters have the name {}", p.name);
    if (p.value.numel() == 0) continue;
    const Storage* const storage = p.value.storage().get();
    const int64_t begin = p.value.offset() * size_of(p.value.dtype()), end = begin + p.value.bytes();
    const auto next = memory.upper_bound({storage, begin});  // the first that ends behind this one's start
    const bool shared = next != memory.end() && next->first.first == storage &&
                        next->second->value.offset() * size_of(next->second->value.dtype()) < end;
    WEFT_CHECK(!shared, optimizer, "parameters {} and {} are the same memory: list a shared parameter once",
               next->second->name, p.name);
    memory.emplace(std::pair(storage, end), &p);
  }
}

const std::vector<Named>& Optimizer::parameters(size_t group) const {
  WEFT_CHECK(group < groups_.size(), name(), "group {} of {}", group, groups_.size());
  return groups_[group].named;
}

std::vector<Named> Optimizer::parameters() const {
  std::vector<Named> out;
  for (const Parameters& group : groups_) out.insert(out.end(), group.named.begin(), group.named.end());
  return out;
}

double& Optimizer::lr_of(size_t group) const {
  WEFT_CHECK(group < groups_.size(), name(), "group {} of {}", group, groups_.size());
  for (const Field& field : const_cast<Optimizer*>(this)->fields(group))
    if (std::string_view(field.name) == "lr") return *field.number;
  fail(name(), "this optimizer has no learning rate");
}

double Optimizer::lr(size_t group) const { return lr_of(group); }

void Optimizer::set_lr(double lr) {
  for (size_t i = 0; i < groups_.size(); ++i) set_lr(i, lr);
}

void Optimizer::set_lr(size_t group, double lr) {
  check_not_negative(name(), "lr", lr);
  lr_of(group) = lr;
}

void Optimizer::zero_grad(const ZeroGradOptions& options) {
  for (Parameters& group : groups_)
    for (Named& p : group.named) {
      if (row_gradient(p.value).defined()) set_row_gradient(p.value, {});
      Tensor grad = p.value.grad();
      if (!grad.defined()) continue;
      if (!options.keep) {
        p.value.set_grad({});
      } else if (raw::overlaps_itself(grad)) {
        p.value.set_grad(zeros_like(p.value));
      } else {
        kernels::fill(grad, 0);
        grad.storage()->bump_version();
      }
    }
}

void Optimizer::keep_copy(const Tensor& parameter, const Tensor& copy) {
  const std::vector<Named> all = parameters();
  const auto is_it = [&](const Named& p) { return &p.value.impl() == &parameter.impl(); };
  WEFT_CHECK(std::ranges::any_of(all, is_it), name(), "keep_copy got a tensor {} that is none of its parameters",
             str(parameter.sizes()));
  if (!copy.defined()) {
    copies_.erase(&parameter.impl());
    return;
  }
  WEFT_CHECK(copy.dtype() == bf16 || copy.dtype() == f16, name(), "a copy is bf16 or f16, got {}",
             weft::name(copy.dtype()));
  WEFT_CHECK(parameter.dtype() == f32, name(), "copies are kept of f32 parameters, this one is {}",
             weft::name(parameter.dtype()));
  WEFT_CHECK(copy.sizes() == parameter.sizes() && same_order(copy, parameter) && copy.device() == parameter.device(),
             name(), "the copy {} with strides {} on {} does not lie as its parameter {} with strides {} on {}",
             str(copy.sizes()), str(copy.strides()), weft::name(copy.device()), str(parameter.sizes()),
             str(parameter.strides()), weft::name(parameter.device()));
  copies_[&parameter.impl()] = copy;
}

void Optimizer::step(const StepOptions& options) {
  WEFT_CHECK(options.max_norm >= 0, name(), "max_norm must be at least 0, got {}", options.max_norm);
  Tensor squared_norm;
  if (std::isfinite(options.max_norm)) {
    if (clips_and_copies())
      squared_norm = options.squared_norm.defined() ? options.squared_norm : squared_grad_norm(parameters());
    else
      clip_grad_norm_async(parameters(), options.max_norm, options.squared_norm);
  }
  for (size_t i = 0; i < groups_.size(); ++i) step_group(i, squared_norm, options.max_norm);
}

Tensor Optimizer::state_tensor(const Tensor& parameter, DType dtype, double initial) const {
  WEFT_CHECK(!StepValues::recording(), name(),
             "a step can be captured from the second one on: the first makes the optimizer's state");
  Tensor fresh = empty_like(parameter, dtype);
  kernels::fill(fresh, initial);
  return fresh;
}

void Optimizer::step_group(size_t group, const Tensor& squared_norm, double max_norm) {
  check(group);
  const std::vector<Slot> wanted = slots(group);
  Parameters& own = groups_[group];
  using Key = std::tuple<int64_t, DType, DeviceType, int, int>;  // usually one
  std::map<Key, Batch> batches;
  for (size_t i = 0; i < own.named.size(); ++i) {
    const Tensor& p = own.named[i].value;
    const Tensor grad = p.grad();
    const RowGradient rows = row_gradient(p);
    if (!grad.defined() && !rows.defined()) continue;
    State& state = own.state[i];
    const DType dtype = p.dtype() == f64 ? f64 : f32;
    for (Tensor& x : state.tensors)  // follows a parameter that was converted or moved since
      if (x.dtype() != dtype || x.device() != p.device() || !same_order(x, p)) x = like(p, x, dtype);
    for (size_t k = state.tensors.size(); k < wanted.size(); ++k)
      state.tensors.push_back(state_tensor(p, dtype, wanted[k].initial));
    ++state.step;
    if (rows.defined()) {
      Batch batch;
      batch.step = state.step;
      batch.squared_norm = squared_norm;
      batch.max_norm = max_norm;
      step_rows(group, p, rows, state, std::move(batch));
      continue;
    }
    const auto copy = copies_.find(&p.impl());
    const bool copied = copy != copies_.end();
    Batch& batch = batches[Key{state.step, p.dtype(), p.device().type, p.device().index,
                               copied ? static_cast<int>(copy->second.dtype()) : -1}];
    batch.step = state.step;
    batch.params.push_back(p);
    batch.grads.push_back(matching(grad, p));
    if (copied) batch.copies.push_back(copy->second);
    batch.state.resize(wanted.size());
    for (size_t k = 0; k < wanted.size(); ++k) batch.state[k].push_back(state.tensors[k]);
  }
  for (auto& [key, batch] : batches) {
    batch.squared_norm = squared_norm;
    batch.max_norm = max_norm;
    update(group, batch);
    for (const Tensor& p : batch.params) p.storage()->bump_version();
    for (size_t i = 0; i < batch.copies.size(); ++i) {
      if (!clips_and_copies()) kernels::copy(batch.params[i], batch.copies[i]);
      batch.copies[i].storage()->bump_version();
    }
  }
}

/// The rows, with their state, go through `update` as a small parameter.
void Optimizer::step_rows(size_t group, const Tensor& parameter, const RowGradient& gradient, State& state,
                          Batch batch) {
  WEFT_ASSERT(parameter.dim() == 2 && parameter.is_contiguous());
  const auto rows_of = [&](const Tensor& x) {
    Tensor part = empty(gradient.values.sizes(), {x.dtype(), x.device()});
    kernels::embedding(x, gradient.rows, part);
    return part;
  };
  batch.params = {rows_of(parameter)};
  batch.grads = {gradient.values};
  for (const Tensor& x : state.tensors) batch.state.push_back({rows_of(x)});
  update(group, batch);
  Tensor p = parameter;
  kernels::put_rows(batch.params[0], gradient.rows, p);
  for (size_t k = 0; k < state.tensors.size(); ++k)
    kernels::put_rows(batch.state[k][0], gradient.rows, state.tensors[k]);
  p.storage()->bump_version();
  if (const auto copy = copies_.find(&p.impl()); copy != copies_.end()) {
    kernels::copy(p, copy->second);
    copy->second.storage()->bump_version();
  }
}

}  // namespace weft::optim
