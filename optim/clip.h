// Gradient clipping, by the norm of all gradients together or by value.
#pragma once

#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace weft::optim {

struct ClipOptions {
  /// Throw, naming a parameter, where the norm is infinite or NaN. Without it the norm is returned as it is. Either way
  /// the gradients stay as they are.
  bool error_if_nonfinite = true;
  /// Adds the squares of gradients that other processes hold, for models that are cut over them: called once with this
  /// process's sum of squares, also where that has no gradients.
  std::function<double(double squared_norm)> reduce = {};
};

/// Scales the gradients so that their common 2-norm is at most max_norm, and returns the norm before, computed in
/// double (Pascanu, Mikolov and Bengio, 2013, arXiv:1211.5063). 0 where no parameter has a gradient.
double clip_grad_norm(const std::vector<Named>& parameters, double max_norm, const ClipOptions& options = {});

/// The same without waiting for the device: returns the norm before as a 0-d f64 tensor on the gradients' device.
/// Gradients whose norm is not finite stay as they are, and the norm says so. `squared_norm` is the squared norm where
/// the caller has it (of all processes, say), as squared_grad_norm gives it.
Tensor clip_grad_norm_async(const std::vector<Named>& parameters, double max_norm, const Tensor& squared_norm = {});

/// The square of the gradients' common 2-norm, a 0-d f64 tensor on their device; nothing waits. 0 where no parameter
/// has a gradient.
Tensor squared_grad_norm(const std::vector<Named>& parameters);

/// Limits every element of every gradient to [-max_value, max_value]; a NaN stays one.
void clip_grad_value(const std::vector<Named>& parameters, double max_value);

}  // namespace weft::optim
