// Loss scaling for training in f16, whose smallest numbers are too large for many gradients: the loss is multiplied by
// a factor before backward, so that gradients on their way lie where f16 can hold them, and the f32 gradients of the
// parameters are divided by it again (Micikevicius et al., "Mixed precision training", ICLR 2018, arXiv:1710.03740).
#pragma once

#include <functional>
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

struct LossScalerOptions {
  bool enabled = true;     ///< off, as bf16 wants it: the loss stays as it is and every step is taken
  double initial = 65536;  ///< the first factor; powers of two, also below, lose nothing
  double growth = 2;       ///< the factor rises by this after `interval` steps in a row
  double backoff = 0.5;    ///< and falls by this where a gradient is not finite
  int64_t interval = 2000;
  /// Adds the squares of gradients that other processes hold, as ClipOptions::reduce does, so that all of them skip the
  /// same steps. Not needed where each has all gradients (data parallel).
  std::function<double(double squared_norm)> reduce = {};
};

/// For one optimizer:
///   scaler.scale(loss).backward();                                            // once, or several times to accumulate
///   scaler.unscale(adam);                                                     // only where gradients are looked at
///   scaler.step(adam, {.max_norm = 1});
/// A step is skipped where a gradient is infinite or NaN: the optimizer, its moments and its step counts stay as they
/// are, and the factor falls. That happens now and then, since it is how the largest factor that fits is found.
class LossScaler {
 public:
  explicit LossScaler(const LossScalerOptions& options = {});

  bool enabled() const { return options_.enabled; }
  /// The factor of the next backward: 1 where not enabled.
  double factor() const { return enabled() ? factor_ : 1; }
  /// Steps that were not taken.
  int64_t skipped() const { return skipped_; }

  /// loss · factor, to run backward from. The loss must be f32 or f64: 65536 times a loss overflows f16.
  Tensor scale(const Tensor& loss) const;
  /// Divides all gradients by the factor, in place, and says whether they were finite; those that were not stay as they
  /// are. Once before each step, which does it otherwise. Gradients must be f32 or f64. Waits for the device.
  bool unscale(Optimizer& optimizer);
  /// The optimizer's step where all gradients are finite, and the factor for the next one; says whether it was taken.
  /// Throws where even a factor of 2^-16 did not make them finite: then it is not f16's range that they lack.
  bool step(Optimizer& optimizer, const StepOptions& options = {});

  /// "factor", "growth", "backoff" (f64), "interval", "good_steps" and "skipped" (i64): what is needed to go on as if
  /// nothing had happened between two steps.
  std::vector<Named> state_dict() const;
  /// Entries that are missing, unexpected or out of range make one error that lists them, and nothing has changed then.
  void load_state_dict(const std::vector<Named>& state);

 private:
  LossScalerOptions options_;
  double factor_;
  int64_t good_steps_ = 0, skipped_ = 0;
  const Optimizer* unscaled_ = nullptr;  // whose gradients are divided already
  bool finite_ = true;                   // and what they were
};

}  // namespace weft::optim
