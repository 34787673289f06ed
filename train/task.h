// What a model is trained for: its loss, and which samples it gets right.
#pragma once

#include "tensor/tensor.h"

namespace weft::train {

struct Task {
  /// One number, the mean over samples.
  Tensor (*loss)(const Tensor& output, const Tensor& target);
  /// [n], boolean.
  Tensor (*right)(const Tensor& output, const Tensor& target);
};

/// Logits [n, C] and labels [n]: cross-entropy; right where the largest logit is the label's.
extern const Task classification;
/// Logits [n] or [n, 1] and targets [n], 0 or 1 in the logits' dtype: binary cross-entropy; right where the sign says
/// so.
extern const Task binary_classification;

}  // namespace weft::train
