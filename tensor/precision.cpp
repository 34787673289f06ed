// The options of precision.h.
#include "tensor/precision.h"

#include <atomic>

namespace weft {
namespace {
std::atomic<bool> tf32{false}, nondeterministic{false};
}  // namespace

void allow_tf32(bool allowed) { tf32 = allowed; }
bool tf32_allowed() { return tf32; }
void allow_nondeterministic(bool allowed) { nondeterministic = allowed; }
bool nondeterministic_allowed() { return nondeterministic; }

}  // namespace weft
