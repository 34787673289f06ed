// What results may lose for speed on devices that have something to gain by it. For the whole process; all is off at
// the start.
#pragma once

namespace weft {

/// Lets matrix products and convolutions of f32 run in TF32, which keeps 10 bits of each factor's mantissa, on GPUs
/// that have it.
void allow_tf32(bool allowed);
bool tf32_allowed();

/// Lets convolutions use algorithms whose sums come in another order at each run, so that equal seeds no longer give
/// equal bits.
void allow_nondeterministic(bool allowed);
bool nondeterministic_allowed();

}  // namespace weft
