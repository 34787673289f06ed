// Stratified splits.
#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "data/sampler.h"
#include "tensor/error.h"

namespace weft::data {

HeldOutIndices hold_out(std::span<const int64_t> labels, double fraction, uint64_t seed) {
  WEFT_CHECK(fraction >= 0 && fraction < 1, "hold_out", "the fraction must be in [0, 1), got {}", fraction);
  std::map<int64_t, std::vector<int64_t>> members;
  const auto n = static_cast<int64_t>(labels.size());
  for (const int64_t i : shuffled(n)->indices({.seed = seed})) members[labels[static_cast<size_t>(i)]].push_back(i);
  HeldOutIndices parts;
  for (const auto& [label, indices] : members) {
    const auto held = static_cast<std::ptrdiff_t>(std::llround(fraction * static_cast<double>(indices.size())));
    parts.validation.insert(parts.validation.end(), indices.begin(), indices.begin() + held);
    parts.training.insert(parts.training.end(), indices.begin() + held, indices.end());
  }
  std::sort(parts.training.begin(), parts.training.end());
  std::sort(parts.validation.begin(), parts.validation.end());
  return parts;
}

}  // namespace weft::data
