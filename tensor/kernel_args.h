// Arguments of kernels that are more than a tensor or a number.
#pragma once

#include <array>
#include <cstdint>

namespace weft {

/// What a matrix product or convolution applies to its result.
enum class Activation : uint8_t { none, relu };

}  // namespace weft
