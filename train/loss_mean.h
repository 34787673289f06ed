// The mean of a run's losses, without a wait for the device at each step.
#pragma once

#include "tensor/tensor.h"
#include "train/metrics.h"

namespace weft::train {

/// Adds up losses where they are. On the CPU each is read at once; on a device their sum stays there until `read`.
class LossMean {
 public:
  explicit LossMean(Device device) : device_(device) {}

  /// `loss`: one number, the mean over `count` samples.
  void add(const Tensor& loss, int64_t count);
  /// Brings the sum to the host, which waits for the device. Returns `value`.
  double read();
  /// As of the last `read`, or on the CPU the last `add`; NaN before the first.
  double value() const { return mean_.value(); }
  /// Samples, all of them.
  int64_t count() const { return count_; }

 private:
  Device device_;
  Mean mean_;
  int64_t count_ = 0, unread_ = 0;
  Tensor sum_;  // of the unread ones, f64, on the device
};

}  // namespace weft::train
