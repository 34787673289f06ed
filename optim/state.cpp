// State dictionaries of optimizers. Loading checks everything before it changes anything.
#include <fmt/ranges.h>

#include "optim/entries.h"
#include "optim/optimizer.h"
#include "tensor/kernels.h"

namespace weft::optim {
namespace {

DType state_dtype(const Tensor& parameter) { return parameter.dtype() == f64 ? f64 : f32; }

/// x copied into the memory order and device of its parameter.
Tensor copy_like(const Tensor& x, const Tensor& parameter) {
  Tensor out = empty_like(parameter, x.dtype());
  kernels::copy(x.to(parameter.device()), out);
  return out;
}

}  // namespace

std::vector<Named> Optimizer::state_dict() const {
  auto* self = const_cast<Optimizer*>(this);  // fields are handed out for writing
  std::vector<Named> out;
  for (size_t g = 0; g < groups_.size(); ++g)
    for (const Field& field : self->fields(g))
      out.push_back({fmt::format("group.{}.{}", g, field.name), scalar(field.get(), f64)});
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<Slot> wanted = slots(g);
    for (size_t i = 0; i < groups_[g].named.size(); ++i) {
      const std::string& parameter = groups_[g].named[i].name;
      const State& state = groups_[g].state[i];
      out.push_back({"step." + parameter, scalar(state.step, i64)});
      for (size_t k = 0; k < state.tensors.size(); ++k)
        out.push_back({fmt::format("{}.{}", wanted[k].name, parameter), state.tensors[k]});
    }
  }
  return out;
}

void Optimizer::load_state_dict(const std::vector<Named>& state) {
  // Hyperparameters go in first, since the state tensors depend on them, and come out again if anything is wrong.
  struct Undo {
    std::vector<std::pair<Field, double>> before;
    bool active = true;
    ~Undo() {
      for (auto& [field, value] : before)
        if (active) field.set(value);
    }
  } undo;

  Entries entries(state);
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (Field& field : fields(g)) {
      undo.before.emplace_back(field, field.get());
      const Tensor value = entries.take(fmt::format("group.{}.{}", g, field.name), f64, {});
      if (value.defined()) field.set(value.item());
    }
    try {
      check(g);
    } catch (const Error& error) {
      entries.problems.push_back(error.what());
    }
  }

  std::vector<std::vector<State>> loaded(groups_.size());
  for (size_t g = 0; g < groups_.size(); ++g) {
    const std::vector<Slot> wanted = slots(g);
    for (const Named& p : groups_[g].named) {
      State& fresh = loaded[g].emplace_back();
      const Tensor step = entries.take("step." + p.name, i64, {});
      if (!step.defined()) {  // only its absence is reported
        for (const Slot& slot : wanted) entries.drop(fmt::format("{}.{}", slot.name, p.name));
        continue;
      }
      fresh.step = step.to_vector<int64_t>().front();
      if (fresh.step < 0) entries.problems.push_back(fmt::format("step.{} is {}", p.name, fresh.step));
      if (fresh.step <= 0) continue;
      for (const Slot& slot : wanted)
        fresh.tensors.push_back(
            entries.take(fmt::format("{}.{}", slot.name, p.name), state_dtype(p.value), p.value.sizes()));
    }
  }
  entries.no_more();
  WEFT_CHECK(entries.problems.empty(), name(), "the state does not fit this optimizer: {}",
             fmt::join(entries.problems, "; "));

  for (size_t g = 0; g < groups_.size(); ++g)
    for (size_t i = 0; i < loaded[g].size(); ++i)
      for (Tensor& x : loaded[g][i].tensors) x = copy_like(x, groups_[g].named[i].value);
  for (size_t g = 0; g < groups_.size(); ++g) groups_[g].state = std::move(loaded[g]);
  undo.active = false;
}

}  // namespace weft::optim
