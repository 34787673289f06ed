// What elementwise kernels share whatever their functor: the walk over operands, and runs of elements that are not
// dense or not of their compute type, which pass through buffers.
#include "tensor/cpu/loop.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace weft::cpu_kernels {
namespace {

/// Elements of a buffer: short enough for all operands' buffers to stay in the first cache.
constexpr int64_t kBlock = 512;

/// How runs of a dtype get into dense compute values, and back.
struct Codec {
  int64_t size;          // bytes of an element
  int64_t compute_size;  // of a compute value
  bool converts;         // the two types differ
  void (*load)(const std::byte* from, int64_t step, int64_t n, std::byte* to);
  void (*store)(const std::byte* from, int64_t n, std::byte* to, int64_t step);
};

/// Dense runs, whose f16 the CPU converts eight at a time; gcc does not find that by itself.
template <class T>
void load_dense(const T* x, int64_t n, compute_t<T>* y) {
  int64_t i = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<T, Float16>)
    for (; i + 8 <= n; i += 8)
      _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i))));
#endif
  for (; i < n; ++i) y[i] = load(x[i]);
}

template <class T>
void store_dense(const compute_t<T>* x, int64_t n, T* y) {
  int64_t i = 0;
#ifdef __F16C__
  if constexpr (std::is_same_v<T, Float16>)
    for (; i + 8 <= n; i += 8)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i),
                       _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) y[i] = static_cast<T>(x[i]);
}

template <class T>
void load_run(const std::byte* from, int64_t step, int64_t n, std::byte* to) {
  const T* const x = reinterpret_cast<const T*>(from);
  auto* const y = reinterpret_cast<compute_t<T>*>(to);
  if (step == 0)
    std::fill_n(y, n, load(*x));
  else if (step == 1)
    load_dense(x, n, y);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = load(x[i * step]);
}

template <class T>
void store_run(const std::byte* from, int64_t n, std::byte* to, int64_t step) {
  const auto* const x = reinterpret_cast<const compute_t<T>*>(from);
  T* const y = reinterpret_cast<T*>(to);
  if (step == 1)
    store_dense(x, n, y);
  else
    for (int64_t i = 0; i < n; ++i) y[i * step] = static_cast<T>(x[i]);
}

Codec codec_of(DType dtype) {
  return dispatch(dtype, []<class T>() {
    return Codec{sizeof(T), sizeof(compute_t<T>), !std::is_same_v<T, compute_t<T>>, load_run<T>, store_run<T>};
  });
}

}  // namespace

template <size_t N>
void map_runs(const std::array<const Tensor*, N>& operands, const void* functor, RunFunction* run, bool still_runs) {
  const Loop<N> loop(operands);
  std::array<Codec, N> codec;
  std::array<std::byte*, N> data;
  std::array<bool, N> staged;  // passes through a buffer; strides are the loop's, so this holds for every run
  int still = -1;
  bool any_staged = false;
  for (size_t i = 0; i < N; ++i) {
    codec[i] = codec_of(operands[i]->dtype());
    data[i] = static_cast<std::byte*>(operands[i]->raw_data());
    const bool stands = still_runs && i > 0 && still < 0 && loop.strides[i][0] == 0;
    if (stands) still = static_cast<int>(i) - 1;
    staged[i] = !stands && (codec[i].converts || loop.strides[i][0] != 1);
    any_staged = any_staged || staged[i];
  }
  auto in_place = [&](int64_t n, const std::array<int64_t, N>& at, const std::array<int64_t, N>&) {
    std::array<const void*, N - 1> in;
    for (size_t i = 1; i < N; ++i) in[i - 1] = data[i] + at[i] * codec[i].size;
    run(functor, n, still, data[0] + at[0] * codec[0].size, in.data());
  };
  auto through_buffers = [&](int64_t n, const std::array<int64_t, N>& at, const std::array<int64_t, N>& step) {
    alignas(64) std::byte buffers[N][kBlock * sizeof(double)];
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t count = std::min(kBlock, n - first);
      std::array<const void*, N - 1> in;
      for (size_t i = 1; i < N; ++i) {
        std::byte* const from = data[i] + (at[i] + first * step[i]) * codec[i].size;
        if (staged[i] && (first == 0 || step[i] != 0)) codec[i].load(from, step[i], count, buffers[i]);
        in[i - 1] = staged[i] ? buffers[i] : from;
      }
      std::byte* const to = data[0] + (at[0] + first * step[0]) * codec[0].size;
      run(functor, count, still, staged[0] ? buffers[0] : to, in.data());
      if (staged[0]) codec[0].store(buffers[0], count, to, step[0]);
    }
  };
  if (any_staged)
    loop.run(through_buffers);
  else
    loop.run(in_place);
}

template void map_runs<2>(const std::array<const Tensor*, 2>&, const void*, RunFunction*, bool);
template void map_runs<3>(const std::array<const Tensor*, 3>&, const void*, RunFunction*, bool);
template void map_runs<4>(const std::array<const Tensor*, 4>&, const void*, RunFunction*, bool);

}  // namespace weft::cpu_kernels
