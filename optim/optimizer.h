// Base of all optimizers: parameter groups, per-parameter state made at a parameter's first gradient, and exact state
// dictionaries. A subclass says which state tensors it wants and how one list of parameters is updated.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "autograd/row_gradient.h"
#include "tensor/tensor.h"

namespace weft::optim {

struct ZeroGradOptions {
  bool keep = false;  ///< fill gradients with zeros in place of dropping them
};

struct StepOptions {
  /// Gradients count as if clip_grad_norm had shortened their common norm to this; where the norm is not finite they
  /// count as they are. Nothing waits for the device. Adam and AdamW shorten them as they read them, in the same sweep,
  /// and leave them as they are; others write them.
  double max_norm = std::numeric_limits<double>::infinity();
  /// The squared norm of all gradients (one f64 on their device), where the caller has it, as from squared_grad_norm.
  Tensor squared_norm = {};
};

/// Hyperparameters are read before each step, so they may change between steps. A parameter without gradient is left as
/// it is, state too; a gradient of zeros counts: moments decay, weight decay acts. Of a parameter with a row gradient
/// (autograd/row_gradient.h) the named rows are stepped, as if they were all of it, and the others are left as they
/// are, state too: their moments do not decay meanwhile, and the step count is the parameter's ("lazy" updates).
class Optimizer {
 public:
  // What a subclass is written with.

  /// A hyperparameter by name; flags are 0 or 1 in a state dictionary.
  struct Field {
    const char* name;
    double* number = nullptr;
    bool* flag = nullptr;
    Field(const char* name, double& number) : name(name), number(&number) {}
    Field(const char* name, bool& flag) : name(name), flag(&flag) {}
    double get() const { return number ? *number : *flag; }
    void set(double value) const;
  };
  /// A state tensor that every parameter has, and what it starts from.
  struct Slot {
    const char* name;
    double initial = 0;
  };
  /// Parameters of one group, dtype, device and step count, gradients in the same memory order, and a list for each
  /// slot.
  struct Batch {
    int64_t step = 0;  ///< 1 at the first
    std::vector<Tensor> params, grads;
    std::vector<std::vector<Tensor>> state;
    std::vector<Tensor> copies;  ///< 16-bit ones of all parameters, or none
    Tensor squared_norm;         ///< defined where the update is to clip
    double max_norm = 0;
  };

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual const char* name() const = 0;

  /// One update of every parameter that has a gradient. Nothing is recorded; the parameters' versions rise.
  void step(const StepOptions& options = {});
  /// Drops all gradients (or fills them with zeros): a dropped one leaves its parameter out of the next step.
  void zero_grad(const ZeroGradOptions& options = {});

  /// From here on each step writes the parameter's new value to `copy` as well: bf16 or f16, on its device, with its
  /// sizes and strides. Adam and AdamW do so in the same sweep. An undefined copy ends it. Copies are in no state
  /// dictionary, and follow steps alone: after a change of the parameter by other means copy it anew.
  void keep_copy(const Tensor& parameter, const Tensor& copy);

  size_t groups() const { return groups_.size(); }
  const std::vector<Named>& parameters(size_t group) const;
  /// Of all groups, in order.
  std::vector<Named> parameters() const;

  double lr(size_t group = 0) const;
  /// Of all groups; throws below 0. An optimizer without groups ignores it.
  void set_lr(double lr);
  void set_lr(size_t group, double lr);

  /// "group.<i>.<hyperparameter>" (f64), "step.<parameter>" (i64) and, from a parameter's first step on,
  /// "<state>.<parameter>", such as "exp_avg.conv1.weight". State tensors share memory with the optimizer.
  std::vector<Named> state_dict() const;
  /// Restores all that `state_dict` says, hyperparameters included: the next step is the one that would have come.
  /// Missing, unexpected and misshapen entries throw one error that lists them all, and nothing has changed then.
  void load_state_dict(const std::vector<Named>& state);

 protected:
  Optimizer() = default;
  void add_group(const char* optimizer, std::vector<Named> parameters);

  virtual std::vector<Field> fields(size_t group) = 0;
  /// Throws where a hyperparameter is out of range.
  virtual void check(size_t group) const = 0;
  virtual std::vector<Slot> slots(size_t group) const = 0;
  virtual void update(size_t group, const Batch& batch) = 0;
  /// Whether `update` clips and writes copies by itself; else the base does, before and after.
  virtual bool clips_and_copies() const { return false; }

 private:
  struct State {
    int64_t step = 0;
    std::vector<Tensor> tensors;  // one a slot; none before the first step
  };
  struct Parameters {
    std::vector<Named> named;
    std::vector<State> state;
  };

  double& lr_of(size_t group) const;
  void step_group(size_t group, const Tensor& squared_norm, double max_norm);
  void step_rows(size_t group, const Tensor& parameter, const RowGradient& gradient, State& state, Batch batch);
  Tensor state_tensor(const Tensor& parameter, DType dtype, double initial) const;

  std::vector<Parameters> groups_;
  std::map<const Tensor::Impl*, Tensor> copies_;
};

/// Parameters that share their options.
template <class Options>
struct Group {
  std::vector<Named> parameters;
  Options options = {};
};

/// Holds the options of the groups. A subclass calls `check_all` at the end of its constructor.
template <class Options>
class OptimizerOf : public Optimizer {
 public:
  const char* name() const override { return name_; }
  const Options& options(size_t group = 0) const { return options_.at(group); }

 protected:
  OptimizerOf(const char* name, std::vector<Group<Options>> groups) : name_(name) {
    for (Group<Options>& group : groups) {
      options_.push_back(group.options);
      add_group(name, std::move(group.parameters));
    }
  }
  void check_all() const {
    for (size_t i = 0; i < options_.size(); ++i) check(i);
  }

  std::vector<Options> options_;

 private:
  const char* name_;
};

/// One group.
template <class Options>
std::vector<Group<Options>> one_group(std::vector<Named> parameters, const Options& options) {
  std::vector<Group<Options>> groups(1);
  groups[0] = {std::move(parameters), options};
  return groups;
}

/// Checks that several optimizers share; each throws naming the optimizer and the value.
void check_not_negative(const char* optimizer, const char* what, double value);
void check_fraction(const char* optimizer, const char* what, double value);  // in [0, 1)

}  // namespace weft::optim
