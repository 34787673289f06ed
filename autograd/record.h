// How an op with a gradient is written: compute the value, then
//   return record("softmax", {x}, y, [y = SavedTensor(y), dim](const Tensor& dy) -> Grads { … });
// The rule returns one gradient per input; it runs without recording.
#pragma once

#include <optional>
#include <span>
#include <type_traits>

#include "autograd/grad_mode.h"
#include "autograd/node.h"

namespace weft {

/// A tensor kept for the gradient rule, outside of the graph. Reading it after the memory was written in place throws.
/// Holds nothing while recording is off.
class SavedTensor {
 public:
  SavedTensor() = default;
  explicit SavedTensor(const Tensor& x);
  const Tensor& operator()() const {
    if (value_.storage()->version() != version_) [[unlikely]]
      fail_changed();
    return value_;
  }
  bool defined() const { return value_.defined(); }

 private:
  [[noreturn]] void fail_changed() const;
  Tensor value_;
  uint32_t version_ = 0;
};

/// An input of `record`, not copied.
struct InputRef {
  const Tensor* tensor;
  InputRef(const Tensor& x) : tensor(&x) {}
};

/// Whether x's gradient will be asked for: rules skip the work of those that are not.
inline bool needs_grad(const Tensor& x) { return grad_enabled() && x.defined() && x.impl().grad_node; }

namespace detail {

template <class Rule>
class RuleNode final : public Node {
 public:
  RuleNode(const char* name, Rule rule) : Node(name), rule_(std::move(rule)) {}
  Grads apply(FewOf<Output, 1>& outputs) override {
    if constexpr (std::is_invocable_v<Rule&, const Tensor&>)
      return (*rule_)(outputs[0].grad);
    else {
      std::vector<Tensor> gradients;
      for (size_t i = 0; i < outputs.size(); ++i) gradients.push_back(outputs[i].grad);
      return (*rule_)(gradients);
    }
  }
  void free_saved() override { rule_.reset(); }

 private:
  std::optional<Rule> rule_;
};

void link_input(Node& node, const Tensor& x);
void link_output(Node& node, const Tensor& y);
void check_finite(const char* what, const char* op, const Tensor& x);
/// Throws where y may not be written in place by `op`; `tracked`: with values that require a gradient.
void check_in_place(const char* op, const Tensor& y, bool tracked);

template <class Inputs>
bool any_needs_grad(const Inputs& inputs) {
  if (!grad_enabled()) return false;
  for (const InputRef x : inputs)
    if (x.tensor->defined() && x.tensor->impl().grad_node) return true;
  return false;
}

template <class Inputs, class Rule>
Ref<Node> make_node(const char* name, const Inputs& inputs, Rule&& rule) {
  Ref<Node> node(new RuleNode<std::decay_t<Rule>>(name, std::forward<Rule>(rule)));
  for (const InputRef x : inputs) link_input(*node, *x.tensor);
  return node;
}

template <class Inputs, class Rule>
Tensor record_one(const char* name, const Inputs& inputs, Tensor y, Rule&& rule) {
  if (!any_needs_grad(inputs)) return y;
  if (AnomalyMode::enabled()) [[unlikely]]
    check_finite("value", name, y);
  link_output(*make_node(name, inputs, std::forward<Rule>(rule)), y);
  return y;
}

}  // namespace detail

/// Records y = op(inputs) with its gradient rule, `Grads(const Tensor& dy)`, and returns y. y must be a new tensor (or
/// a new view), not one of the inputs.
template <class Rule>
Tensor record(const char* name, std::initializer_list<InputRef> inputs, Tensor y, Rule&& rule) {
  return detail::record_one(name, inputs, std::move(y), std::forward<Rule>(rule));
}
/// The same for a list of inputs.
template <class Rule>
Tensor record(const char* name, std::span<const Tensor> inputs, Tensor y, Rule&& rule) {
  return detail::record_one(name, inputs, std::move(y), std::forward<Rule>(rule));
}

/// Several outputs; the rule is `Grads(const std::vector<Tensor>& dys)`, undefined where an output was not used.
template <class Rule>
void record_many(const char* name, std::initializer_list<InputRef> inputs, std::initializer_list<InputRef> outputs,
                 Rule&& rule) {
  if (!detail::any_needs_grad(inputs)) return;
  Ref<Node> node = detail::make_node(name, inputs, std::forward<Rule>(rule));
  for (const InputRef y : outputs) detail::link_output(*node, *y.tensor);
}

/// The same for a list of outputs.
template <class Rule>
void record_many(const char* name, std::initializer_list<InputRef> inputs, std::span<const Tensor> outputs,
                 Rule&& rule) {
  if (!detail::any_needs_grad(inputs)) return;
  Ref<Node> node = detail::make_node(name, inputs, std::forward<Rule>(rule));
  for (const Tensor& y : outputs) detail::link_output(*node, y);
}

/// An op that wrote y in place: y's history becomes this op after what it was. `write` does the writing, after the
/// checks and after the inputs were linked.
template <class Write, class Rule>
void record_in_place(const char* name, Tensor& y, std::initializer_list<InputRef> inputs, Write&& write, Rule&& rule) {
  const bool tracked = detail::any_needs_grad(inputs);
  detail::check_in_place(name, y, tracked);
  Ref<Node> node;
  if (tracked) node = detail::make_node(name, inputs, std::forward<Rule>(rule));
  write();
  y.storage()->bump_version();
  if (node) detail::link_output(*node, y);
}

}  // namespace weft
