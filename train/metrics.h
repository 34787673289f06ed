// Metrics of an epoch.
#pragma once

#include <cstdint>
#include <limits>

namespace weft::train {

/// The mean over samples of values that came as means of batches: each counts as often as its batch had samples, so a
/// short last batch weighs less. Ranks add their sums with `merge`, not their means.
class Mean {
 public:
  /// The mean of `count` samples; a count of 0 changes nothing.
  void add(double value, int64_t count = 1) {
    if (count == 0) return;
    sum_ += value * static_cast<double>(count);
    count_ += count;
  }
  void merge(const Mean& other) {
    sum_ += other.sum_;
    count_ += other.count_;
  }
  /// NaN before the first sample.
  double value() const {
    return count_ == 0 ? std::numeric_limits<double>::quiet_NaN() : sum_ / static_cast<double>(count_);
  }
  double sum() const { return sum_; }
  int64_t count() const { return count_; }
  void reset() { *this = Mean(); }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

}  // namespace weft::train
