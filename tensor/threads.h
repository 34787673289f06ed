// Threads of CPU kernels: one OpenMP team, sized by --threads or OMP_NUM_THREADS.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace weft {

/// Threads that a kernel called from this thread may use; at least 1.
int num_threads();
/// Sets it for all kernels from here on; throws below 1.
void set_num_threads(int n);

/// While one of these lives, kernels called from this thread use no team: for threads that work beside the main one.
class SingleThreaded {
 public:
  SingleThreaded();
  ~SingleThreaded();
  SingleThreaded(const SingleThreaded&) = delete;
  SingleThreaded& operator=(const SingleThreaded&) = delete;

 private:
  int before_;  // OpenMP's own setting for this thread, which oneDNN reads
};

/// Calls f(begin, end) on pieces of [0, n), in parallel where n passes `grain`. The pieces depend on n, the grain and
/// the number of threads only, so a run is repeatable. `f` must not throw.
template <class F>
void parallel_for(int64_t n, [[maybe_unused]] int64_t grain, F&& f) {
#ifdef _OPENMP
  const int64_t pieces = std::min<int64_t>(num_threads(), (n + grain - 1) / std::max<int64_t>(grain, 1));
  if (pieces > 1 && !omp_in_parallel()) {
#pragma omp parallel num_threads(static_cast <int>(pieces))
    {
      const int64_t i = omp_get_thread_num(), count = omp_get_num_threads();
      const int64_t begin = n / count * i + std::min(i, n % count);
      const int64_t end = begin + n / count + (i < n % count);
      if (begin < end) f(begin, end);
    }
    return;
  }
#endif
  if (n > 0) f(int64_t{0}, n);
}

/// While one of these lives, subnormal floats count as zero on this thread and on the kernels' threads; what was before
/// comes back at the end. An LSTM's backward is thirty times slower without it. The training loop and `backward` open
/// one; `set_flush_denormals(false)` makes all of them idle.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_ = 0;
  bool active_;
};

void set_flush_denormals(bool on);

}  // namespace weft
