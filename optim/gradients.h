// The gradients of parameters as what works on all of them wants them. For clipping and loss scaling.
#pragma once

#include <span>
#include <vector>

#include "tensor/tensor.h"

namespace weft::optim {

/// Gradients to write to, each once, the values of row gradients among them; one that has no dense memory of its own is
/// replaced by a copy that has.
std::vector<Tensor> gradients_of(const std::vector<Named>& parameters);
/// Σ x² over all as one f64 on `device`, which all are on; nothing waits.
Tensor squared_norm(std::span<const Tensor> list, Device device);
/// The same, waiting for the device.
double squared_norm(std::span<const Tensor> list);

}  // namespace weft::optim
