// Running gradients: backward, hooks, checks of gradient rules, recomputation.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "tensor/tensor.h"

namespace weft {

struct BackwardOptions {
  Tensor gradient = {};       ///< d loss / d this tensor; may be left out for one element
  bool retain_graph = false;  ///< keep what the rules saved, for another pass
  bool create_graph = false;  ///< second derivatives: refused with an error
};

/// Backward from several tensors at once; `gradients` has one for each, undefined ones count as 1.
void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients = {}, bool retain_graph = false);

/// Calls `hook` with the gradient of x when it is complete; a defined result replaces it.
void register_hook(const Tensor& x, std::function<Tensor(const Tensor&)> hook);
/// Calls `hook` each time a backward pass has added to leaf x's gradient.
void register_ready_hook(const Tensor& x, std::function<void(Tensor& grad)> hook);
/// Calls `f` once, at the end of the backward pass that is running on this thread.
void after_backward(std::function<void()> f);

/// Activation checkpointing: runs f without keeping its activations, and runs it again during backward with the same
/// random numbers. Running statistics are not updated the second time.
Tensor recompute(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);
/// True while `recompute` runs a forward for the second time.
bool replaying();

struct GradcheckOptions {
  double step = 1e-6;      ///< of the central difference
  double relative = 1e-5;  ///< tolerance
  double absolute = 1e-7;  ///< tolerance
};

struct GradcheckResult {
  bool ok = true;
  std::string message;  ///< input, element, both values of the worst disagreement
  explicit operator bool() const { return ok; }
};

using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// Compares the gradients of f with central differences, element by element, in f64. Non-floating inputs are passed on
/// as they are. f must be deterministic.
GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options = {});
inline GradcheckResult gradcheck(Tensor (*f)(const Tensor&), const std::vector<Tensor>& inputs,
                                 GradcheckOptions options = {}) {
  return gradcheck([f](const std::vector<Tensor>& in) { return f(in.at(0)); }, inputs, options);
}
inline GradcheckResult gradcheck(Tensor (*f)(Tensor), const std::vector<Tensor>& inputs,
                                 GradcheckOptions options = {}) {
  return gradcheck([f](const std::vector<Tensor>& in) { return f(in.at(0)); }, inputs, options);
}
inline GradcheckResult gradcheck(Tensor (*f)(const Tensor&, const Tensor&), const std::vector<Tensor>& inputs,
                                 GradcheckOptions options = {}) {
  return gradcheck([f](const std::vector<Tensor>& in) { return f(in.at(0), in.at(1)); }, inputs, options);
}

}  // namespace weft
