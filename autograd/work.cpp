// The counter of multiply-adds.
#include "autograd/work.h"

namespace weft {
namespace {
thread_local int64_t counted = 0;
}

void count_multiply_adds(int64_t n) { counted += n; }
int64_t multiply_adds() { return counted; }

}  // namespace weft
