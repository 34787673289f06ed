// The size of the kernels' team, and the floating-point mode of its threads.
#include "tensor/threads.h"

#include <atomic>

#include "tensor/error.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace weft {
namespace {

int default_threads() {
#ifdef _OPENMP
  return omp_get_max_threads();  // honours OMP_NUM_THREADS
#else
  return 1;
#endif
}

std::atomic<int>& team_size() {
  static std::atomic<int> size{default_threads()};
  return size;
}

std::atomic<bool> flushing{true};

thread_local int single_threaded = 0;  // SingleThreaded scopes that this thread is in

#ifdef __SSE2__
constexpr unsigned kFlushToZeroAndDenormalsAreZero = 0x8040;

void set_mode_of_team(unsigned mode) {
  _mm_setcsr(mode);
#ifdef _OPENMP
  if (omp_in_parallel()) return;
#pragma omp parallel num_threads(num_threads())
  _mm_setcsr(mode);
#endif
}
#endif

}  // namespace

int num_threads() { return single_threaded > 0 ? 1 : team_size().load(std::memory_order_relaxed); }

#ifdef _OPENMP
SingleThreaded::SingleThreaded() : before_(omp_get_max_threads()) {
  ++single_threaded;
  omp_set_num_threads(1);
}

SingleThreaded::~SingleThreaded() {
  --single_threaded;
  omp_set_num_threads(before_);
}
#else
SingleThreaded::SingleThreaded() : before_(1) { ++single_threaded; }
SingleThreaded::~SingleThreaded() { --single_threaded; }
#endif

void set_num_threads(int n) {
  WEFT_CHECK(n >= 1, "threads", "the number of threads must be at least 1, got {}", n);
  team_size().store(n);
#ifdef _OPENMP
  omp_set_num_threads(n);  // oneDNN reads it
#endif
}

#ifdef __SSE2__
FlushDenormals::FlushDenormals() : before_(_mm_getcsr()), active_(flushing.load() && (before_ & 0x8040) != 0x8040) {
  if (active_) set_mode_of_team(before_ | kFlushToZeroAndDenormalsAreZero);
}

FlushDenormals::~FlushDenormals() {
  if (active_) set_mode_of_team(before_);
}
#else
FlushDenormals::FlushDenormals() : active_(false) {}
FlushDenormals::~FlushDenormals() = default;
#endif

void set_flush_denormals(bool on) { flushing.store(on); }

}  // namespace weft
