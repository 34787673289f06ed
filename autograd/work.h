// Counts the multiply-adds of the ops that run on this thread; `Module::summary` reads it.
#pragma once

#include <cstdint>

namespace weft {

/// Called by matrix products and convolutions.
void count_multiply_adds(int64_t n);
/// All that this thread has counted so far.
int64_t multiply_adds();

}  // namespace weft
