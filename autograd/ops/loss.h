// Losses. Reduction::mean divides by the number of elements, or by the weight of the labels that count; sums happen in
// double. For a mean over several batches of unequal size (accumulation, ranks), take Reduction::sum of each and divide
// by the total count: a mean of means is another number.
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft {

struct CrossEntropyOptions {
  Tensor weight = {};           ///< [C], of each class
  int64_t ignore_index = -100;  ///< rows with this label count nothing
  double label_smoothing = 0;   ///< this share of the target is spread over all classes
  Reduction reduction = Reduction::mean;
};

/// Softmax and negative log-likelihood in one: logits [N, C] or [N, C, d…], target [N] or [N, d…] of i64 or i32 labels.
/// The mean is over the weights of the labels that count; where none counts the loss is 0 and so are the gradients.
/// Throws for a label outside of [0, C) that is not ignore_index, with its value and position.
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options = {});

struct NllOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::mean;
};

/// The same from log-probabilities, what log_softmax gives.
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const NllOptions& options = {});

struct BceOptions {
  Tensor weight = {};           ///< of each element's loss; broadcast to the logits
  Tensor positive_weight = {};  ///< of the part where the target is 1; broadcast to the logits
  Reduction reduction = Reduction::mean;
};

/// Binary cross-entropy of sigmoid(logits), stable for logits of any size. The target has the logits' shape and is
/// between 0 and 1.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options = {});

struct LossOptions {
  Reduction reduction = Reduction::mean;
};

/// (input - target)². As the ones below it throws where the shapes differ: nothing is broadcast.
Tensor mse_loss(const Tensor& input, const Tensor& target, const LossOptions& options = {});
/// |input - target|.
Tensor l1_loss(const Tensor& input, const Tensor& target, const LossOptions& options = {});

struct HuberOptions {
  double delta = 1;
  Reduction reduction = Reduction::mean;
};

/// d² / 2 for |d| ≤ delta, and the line delta · (|d| - delta / 2) beyond (Huber, 1964).
Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberOptions& options = {});

}  // namespace weft
