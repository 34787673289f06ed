// What elementwise kernels share whatever their functor: the walk over operands, and runs of elements that are not
// dense or not of their compute type, which pass through buffers.
#include "tensor/cpu/loop.h"

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

template <class T>
void load_run(const std::byte* from, int64_t step, int64_t n, std::byte* to) {
  const T* const x = reinterpret_cast<const T*>(from);
  auto* const y = reinterpret_cast<compute_t<T>*>(to);
  if (step == 0)
    std::fill_n(y, n, load(*x));
  else if (step == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = load(x[i]);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = load(x[i * step]);
}

template <class T>
void store_run(const std::byte* from, int64_t n, std::byte* to, int64_t step) {
  const auto* const x = reinterpret_cast<const compute_t<T>*>(from);
  T* const y = reinterpret_cast<T*>(to);
  if (step == 1)
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(x[i]);
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
  std::array<Codec, N> codec;
  std::array<std::byte*, N> data;
  for (size_t i = 0; i < N; ++i) {
    codec[i] = codec_of(operands[i]->dtype());
    data[i] = static_cast<std::byte*>(operands[i]->raw_data());
  }
  Loop<N>(operands).run([&](int64_t n, const std::array<int64_t, N>& at, const std::array<int64_t, N>& step) {
    std::array<std::byte*, N> here;
    std::array<bool, N> staged;
    int still = -1;
    bool any_staged = false;
    for (size_t i = 0; i < N; ++i) {
      here[i] = data[i] + at[i] * codec[i].size;
      staged[i] = codec[i].converts || step[i] != 1;
      if (still_runs && i > 0 && still < 0 && step[i] == 0) {
        still = static_cast<int>(i) - 1;
        staged[i] = false;
      }
      any_staged = any_staged || staged[i];
    }
    if (!any_staged) {
      std::array<const void*, N - 1> in;
      std::copy_n(here.begin() + 1, N - 1, in.begin());
      run(functor, n, still, here[0], in.data());
      return;
    }
    alignas(64) std::byte buffers[N][kBlock * sizeof(double)];
    for (int64_t first = 0; first < n; first += kBlock) {
      const int64_t count = std::min(kBlock, n - first);
      std::array<const void*, N - 1> in;
      for (size_t i = 1; i < N; ++i) {
        std::byte* const from = here[i] + first * step[i] * codec[i].size;
        if (staged[i] && (first == 0 || step[i] != 0)) codec[i].load(from, step[i], count, buffers[i]);
        in[i - 1] = staged[i] ? buffers[i] : from;
      }
      std::byte* const to = here[0] + first * step[0] * codec[0].size;
      run(functor, count, still, staged[0] ? buffers[0] : to, in.data());
      if (staged[0]) codec[0].store(buffers[0], count, to, step[0]);
    }
  });
}

template void map_runs<2>(const std::array<const Tensor*, 2>&, const void*, RunFunction*, bool);
template void map_runs<3>(const std::array<const Tensor*, 3>&, const void*, RunFunction*, bool);
template void map_runs<4>(const std::array<const Tensor*, 4>&, const void*, RunFunction*, bool);

}  // namespace weft::cpu_kernels
