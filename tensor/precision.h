// How exact f32 arithmetic is on devices that can trade it for speed.
#pragma once

namespace weft {

/// Lets matrix products and convolutions of f32 run in TF32, which keeps 10 bits of each factor's mantissa, on GPUs
/// that have it. For the whole process; off at the start.
void allow_tf32(bool allowed);
bool tf32_allowed();

}  // namespace weft
