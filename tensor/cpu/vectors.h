// Vectors as wide as the CPU's registers, for inner loops that keep their sums in them.
#pragma once

#include <cstdint>

namespace weft::cpu_kernels {

#ifdef __AVX512F__
inline constexpr int64_t kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int64_t kVectorBytes = 32;
#else
inline constexpr int64_t kVectorBytes = 16;
#endif

/// Elements of a vector.
template <class T>
inline constexpr int64_t kLanesOf = kVectorBytes / static_cast<int64_t>(sizeof(T));

/// Vectors of T at any address of a T.
template <class T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
};
template <>
struct VectorOf<int32_t> {
  typedef int32_t type __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
};
template <>
struct VectorOf<int64_t> {
  typedef int64_t type __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
};

template <class T>
inline typename VectorOf<T>::type load_vector(const T* p) {
  return *reinterpret_cast<const typename VectorOf<T>::type*>(p);
}
template <class T>
inline void store_vector(T* p, typename VectorOf<T>::type v) {
  *reinterpret_cast<typename VectorOf<T>::type*>(p) = v;
}

}  // namespace weft::cpu_kernels
