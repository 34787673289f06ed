// A held-out part of the training data, for choosing what the test set must not choose.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"

namespace weft::data {

struct HeldOutIndices {
  std::vector<int64_t> training, validation;  ///< both ascending; together every index once
};

/// Of each label, the share `fraction` (rounded, so that classes keep their proportions) goes to validation: which
/// samples depends on the labels and `seed` alone. `fraction` is in [0, 1).
HeldOutIndices hold_out(std::span<const int64_t> labels, double fraction, uint64_t seed = 0);

struct HeldOut {
  Subset training, validation;
};

/// The same as subsets of `dataset`, which must outlive them; `labels[i]` is sample i's.
inline HeldOut hold_out(const Dataset& dataset, std::span<const int64_t> labels, double fraction, uint64_t seed = 0) {
  HeldOutIndices parts = hold_out(labels, fraction, seed);
  return {Subset(dataset, std::move(parts.training)), Subset(dataset, std::move(parts.validation))};
}

}  // namespace weft::data
