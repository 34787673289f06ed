// Rotary positions: Su et al., "RoFormer: enhanced Transformer with rotary position embedding", 2021
// (arXiv:2104.09864).
#pragma once

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft {

using RotaryOptions = RotaryParameters;

/// x [B, H, T, D], D even: row t is position offset + t, which turns pair i of its elements by the angle
/// position · base^(-2i / D). Pairs are elements i and i + D / 2, or neighbours where `interleaved`. Products of turned
/// queries and keys then depend on the distance of their positions only.
Tensor rotary(const Tensor& x, const RotaryOptions& options = {});

}  // namespace weft
