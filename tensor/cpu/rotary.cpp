// Rotary positions: the sines and cosines of all positions once, then every head's rows are turned by them.
#include <cmath>
#include <vector>

#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {
namespace {

/// [T, D / 2] of each, in C.
template <class C>
struct Angles {
  std::vector<C> cosines, sines;

  Angles(int64_t rows, int64_t pairs, const RotaryParameters& p, bool back)
      : cosines(static_cast<size_t>(rows * pairs)), sines(cosines.size()) {
    parallel_for(rows, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < pairs; ++i) {
        const double rate = std::pow(p.base, -static_cast<double>(i) / static_cast<double>(pairs));
        for (int64_t t = begin; t < end; ++t) {
          const double angle = static_cast<double>(p.offset + t) * rate;
          const auto at = static_cast<size_t>(t * pairs + i);
          cosines[at] = static_cast<C>(std::cos(angle));
          sines[at] = static_cast<C>(back ? -std::sin(angle) : std::sin(angle));
        }
      }
    });
  }
};

}  // namespace

void rotary(const Tensor& x, const RotaryParameters& parameters, bool back, Tensor& out) {
  const int64_t heads = x.sizes()[1], length = x.sizes()[2], pairs = x.sizes()[3] / 2;
  if (x.numel() == 0) return;
  WEFT_ASSERT(x.strides()[3] == 1 && out.strides()[3] == 1);
  dispatch_floating("rotary", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const Angles<C> angles(length, pairs, parameters, back);
    const int64_t step = parameters.interleaved ? 2 : 1, other = parameters.interleaved ? 1 : pairs;
    parallel_for(x.numel() / (2 * pairs), std::max<int64_t>(1, kGrain / (2 * pairs)), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t t = row % length, h = row / length % heads, b = row / length / heads;
        const auto at = [&](const Tensor& y) { return b * y.strides()[0] + h * y.strides()[1] + t * y.strides()[2]; };
        const T* const from = x.data<T>() + at(x);
        T* const to = out.data<T>() + at(out);
        const C *const c = angles.cosines.data() + t * pairs, *const s = angles.sines.data() + t * pairs;
#pragma GCC ivdep
        for (int64_t i = 0; i < pairs; ++i) {
          const C a = load(from[i * step]), o = load(from[i * step + other]);
          to[i * step] = static_cast<T>(a * c[i] - o * s[i]);
          to[i * step + other] = static_cast<T>(a * s[i] + o * c[i]);
        }
      }
    });
  });
}

}  // namespace weft::cpu_kernels
