// Adam (Kingma and Ba, 2015, arXiv:1412.6980, algorithm 1), with AMSGrad's maximum (Reddi et al., 2018,
// arXiv:1904.09237), and AdamW, whose weight decay is decoupled from the gradient (Loshchilov and Hutter, 2019,
// arXiv:1711.05101, algorithm 2).
#pragma once

#include "optim/optimizer.h"

namespace weft::optim {

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;  ///< of the means of gradients and of their squares, in [0, 1)
  double eps = 1e-8;                  ///< added to the root of the corrected mean square
  double weight_decay = 0;            ///< L2: weight_decay · p is added to the gradient, before the moments
  bool amsgrad = false;               ///< divide by the largest mean square so far
};

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;  ///< decoupled: p shrinks by lr · weight_decay · p, moments do not see it
  bool amsgrad = false;
};

/// m = β1 m + (1 - β1) g, v = β2 v + (1 - β2) g², p -= lr · m / (1 - β1^t) / (√(v / (1 - β2^t)) + eps).
/// State: exp_avg, exp_avg_sq, and max_exp_avg_sq with amsgrad.
class Adam : public OptimizerOf<AdamOptions> {
 public:
  explicit Adam(std::vector<Named> parameters, const AdamOptions& options = {})
      : Adam(one_group(std::move(parameters), options)) {}
  explicit Adam(std::vector<Group<AdamOptions>> groups);

 protected:
  std::vector<Field> fields(size_t group) override;
  void check(size_t group) const override;
  std::vector<Slot> slots(size_t group) const override;
  void update(size_t group, const Batch& batch) override;
  bool clips_and_copies() const override { return true; }
};

/// The same, with p *= 1 - lr · weight_decay before it.
class AdamW : public OptimizerOf<AdamWOptions> {
 public:
  explicit AdamW(std::vector<Named> parameters, const AdamWOptions& options = {})
      : AdamW(one_group(std::move(parameters), options)) {}
  explicit AdamW(std::vector<Group<AdamWOptions>> groups);

 protected:
  std::vector<Field> fields(size_t group) override;
  void check(size_t group) const override;
  std::vector<Slot> slots(size_t group) const override;
  void update(size_t group, const Batch& batch) override;
  bool clips_and_copies() const override { return true; }
};

}  // namespace weft::optim
