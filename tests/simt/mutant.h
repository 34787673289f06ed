// Switches that mutants.sh writes into copies of kernel sources: one build holds all mutants, and the environment's
// SIMT_MUTANT says which one is alive. With SIMT_REACHED=FILE, the numbers of the switches that a run passed go there.
#pragma once

#include <simt.h>

#include <cstdio>
#include <cstdlib>

namespace simt {

class Mutants {
 public:
  Mutants() {
    if (const char* number = std::getenv("SIMT_MUTANT")) alive_ = std::atoi(number);
  }
  ~Mutants() {
    const char* name = std::getenv("SIMT_REACHED");
    std::FILE* file = name ? std::fopen(name, "a") : nullptr;
    if (!file) return;
    for (int n = 0; n < kMost; ++n)
      if (reached_[n]) std::fprintf(file, "%d\n", n);
    std::fclose(file);
  }
  Mutants(const Mutants&) = delete;
  Mutants& operator=(const Mutants&) = delete;

  /// Relaxed, so that ThreadSanitizer sees no order in it.
  bool operator()(int n) {
    __atomic_store_n(&reached_[n], 1, __ATOMIC_RELAXED);
    return n == alive_;
  }

 private:
  static constexpr int kMost = 8192;
  int alive_ = 0;
  unsigned char reached_[kMost] = {};
};
inline Mutants mutants;

inline bool mutant(int n) { return mutants(n); }
/// What a mask is joined with.
inline unsigned mutant_mask(int n) { return mutants(n) ? 0x0000ffffu : ~0u; }

/// The atomic `whole`, or the same in two steps that others can come between: what *x becomes is change(*x).
template <class T, class Whole, class Change>
T torn(int n, T* x, const Whole& whole, const Change& change) {
  if (!mutants(n)) return whole();
  const T old = *x;
  *x = static_cast<T>(change(old));
  return old;
}
template <class T, class V>
T torn_Add(int n, T* x, V v) {
  return torn(
      n, x, [&] { return atomicAdd(x, v); }, [&](T old) { return wrapping_sum(old, static_cast<T>(v)); });
}
template <class T, class V>
T torn_Max(int n, T* x, V v) {
  return torn(
      n, x, [&] { return atomicMax(x, v); }, [&](T old) { return old < static_cast<T>(v) ? v : old; });
}
template <class T, class V>
T torn_Min(int n, T* x, V v) {
  return torn(
      n, x, [&] { return atomicMin(x, v); }, [&](T old) { return static_cast<T>(v) < old ? v : old; });
}
template <class T, class V>
T torn_Or(int n, T* x, V v) {
  return torn(
      n, x, [&] { return atomicOr(x, v); }, [&](T old) { return old | v; });
}
template <class T, class V>
T torn_Exch(int n, T* x, V v) {
  return torn(
      n, x, [&] { return atomicExch(x, v); }, [&](T) { return v; });
}
template <class T, class V>
T torn_Inc(int n, T* x, V v) {
  return torn(
      n, x, [&] { return atomicInc(x, v); }, [&](T old) { return old >= v ? 0 : old + 1; });
}
template <class T, class V, class W>
T torn_CAS(int n, T* x, V v, W w) {
  return torn(
      n, x, [&] { return atomicCAS(x, v, w); }, [&](T old) { return old == static_cast<T>(v) ? w : old; });
}

}  // namespace simt
