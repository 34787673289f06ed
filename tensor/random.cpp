// The default generator.
#include "tensor/random.h"

namespace weft {

Generator& default_generator() {
  thread_local Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) { default_generator().seed(seed); }

}  // namespace weft
