// The options of precision.h.
#include "tensor/precision.h"

#include <atomic>

namespace weft {
namespace {
std::atomic<bool> tf32{false};
}

void allow_tf32(bool allowed) { tf32 = allowed; }
bool tf32_allowed() { return tf32; }

}  // namespace weft
