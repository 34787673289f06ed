// Random fills; element i depends on the counter alone, so neither threads nor devices change the numbers.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/kernels.h"
#include "tensor/threads.h"

namespace weft::cpu_kernels {
namespace {

/// y[i] = f(words), four elements a block; f gets a block and the word's position.
template <class T, class F>
void fill_by_blocks(Tensor& out, Philox state, int64_t per_block, const F& f) {
  WEFT_ASSERT(out.is_contiguous());
  T* y = out.data<T>();
  const int64_t n = out.numel(), blocks = (n + per_block - 1) / per_block;
  parallel_for(blocks, 2048, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const PhiloxBlock words = philox(state.seed, state.offset + static_cast<uint64_t>(b));
      const int64_t last = std::min(n - b * per_block, per_block);
      for (int64_t k = 0; k < last; ++k) y[b * per_block + k] = f(words, static_cast<size_t>(k));
    }
  });
}

}  // namespace

void uniform(Tensor& out, double low, double high, Philox state) {
  dispatch_floating("uniform", out.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      fill_by_blocks<T>(out, state, 2, [=](const PhiloxBlock& w, size_t k) {
        return low + (high - low) * to_unit_double(w[2 * k], w[2 * k + 1]);
      });
    } else {
      const auto a = static_cast<float>(low), range = static_cast<float>(high - low);
      fill_by_blocks<T>(out, state, 4, [=](const PhiloxBlock& w, size_t k) {
        return static_cast<T>(a + range * to_unit_float(w[k]));
      });
    }
  });
}

void normal(Tensor& out, double mean, double deviation, Philox state) {
  // Box and Muller: two uniforms make two normals; 1 - u keeps the logarithm's argument above 0.
  dispatch_floating("normal", out.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      fill_by_blocks<T>(out, state, 2, [=](const PhiloxBlock& w, size_t k) {
        const double r = std::sqrt(-2 * std::log(1 - to_unit_double(w[0], w[1])));
        const double angle = 2 * std::numbers::pi * to_unit_double(w[2], w[3]);
        return mean + deviation * r * (k == 0 ? std::cos(angle) : std::sin(angle));
      });
    } else {
      const auto m = static_cast<float>(mean), s = static_cast<float>(deviation);
      fill_by_blocks<T>(out, state, 4, [=](const PhiloxBlock& w, size_t k) {
        const size_t pair = k & ~size_t{1};
        const float r = std::sqrt(-2 * std::log(1 - to_unit_float(w[pair])));
        const float angle = 2 * std::numbers::pi_v<float> * to_unit_float(w[pair + 1]);
        return static_cast<T>(m + s * r * (k == pair ? std::cos(angle) : std::sin(angle)));
      });
    }
  });
}

void randint(Tensor& out, int64_t low, int64_t high, Philox state) {
  const auto range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  fill_by_blocks<int64_t>(out, state, 2, [=](const PhiloxBlock& w, size_t k) {
    const uint64_t bits = uint64_t{w[2 * k]} << 32 | w[2 * k + 1];
    const auto scaled = static_cast<uint64_t>(static_cast<unsigned __int128>(bits) * range >> 64);
    return static_cast<int64_t>(static_cast<uint64_t>(low) + scaled);
  });
}

}  // namespace weft::cpu_kernels
