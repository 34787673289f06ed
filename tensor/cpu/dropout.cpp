// Dropout: element i, counted in memory order, uses word i % 4 of block `offset + i / 4`.
#include "tensor/cpu/draw.h"
#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {
namespace {

constexpr int64_t kPiece = 4 * kBlocks;

/// body(first, count, words) for pieces of n elements, each with a word for every element.
template <class Body>
void with_draws(int64_t n, Philox state, const Body& body) {
  parallel_for((n + kPiece - 1) / kPiece, kGrain / kPiece, [&](int64_t begin, int64_t end) {
    uint32_t words[kPiece];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * kPiece, count = std::min(kPiece, n - first);
      draw(state.seed, state.offset + static_cast<uint64_t>(piece * kBlocks), words);
      if (count == kPiece)
        body(first, kPiece, words);
      else
        body(first, count, words);
    }
  });
}

/// Kept where the word is at least p · 2^32, with 0 < p < 1.
uint32_t threshold_of(double p) { return static_cast<uint32_t>(p * 0x1p32); }

/// values = x + bias for `count` elements from `first` on, the bias going along rows of `columns`.
template <class T>
void biased(const T* x, const T* bias, int64_t columns, int64_t first, int64_t count, compute_t<T>* values) {
  for (int64_t i = 0, column = first % columns; i < count; column = 0) {
    const int64_t run = std::min(columns - column, count - i);
#pragma GCC ivdep
    for (int64_t k = 0; k < run; ++k) values[i + k] = load(x[first + i + k]) + load(bias[column + k]);
    i += run;
  }
}

}  // namespace

void dropout(const Tensor& x, double p, Philox state, Tensor& out, Tensor& mask) {
  WEFT_ASSERT(x.strides() == out.strides() && x.strides() == mask.strides());
  const uint32_t threshold = threshold_of(p);
  dispatch_floating("dropout", x.dtype(), [&]<class T>() {
    const auto scale = static_cast<compute_t<T>>(1 / (1 - p));
    const T* const from = x.data<T>();
    T* const to = out.data<T>();
    bool* const kept = mask.data<bool>();
    // Chosen, not multiplied by the mask: what is dropped is 0 even where x is infinite.
    with_draws(x.numel(), state, [=](int64_t first, int64_t count, const uint32_t* words) {
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        const bool keep = words[i] >= threshold;
        const auto v = load(from[first + i]) * scale;
        kept[first + i] = keep;
        to[first + i] = static_cast<T>(keep ? v : compute_t<T>(0));
      }
    });
  });
}

void dropout_grad(const Tensor& dy, const Tensor& mask, double scale, Tensor& dx) {
  dispatch_floating("dropout", dx.dtype(), [&]<class T>() {
    const auto s = static_cast<compute_t<T>>(scale);
    map<T, T, bool>([s](auto g, bool keep) { return keep ? g * s : decltype(g)(0); }, dx, dy, mask);
  });
}

void dropout_add(const Tensor& x, const Tensor& bias, const Tensor& residual, double p, Philox state, Tensor& out,
                 Tensor& mask) {
  WEFT_ASSERT(x.is_contiguous() && residual.is_contiguous() && out.is_contiguous() && mask.defined() == (p > 0));
  const uint32_t threshold = threshold_of(p);
  dispatch_floating("dropout_add", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const auto scale = static_cast<C>(1 / (1 - p));
    const T *const from = x.data<T>(), *const added = bias.defined() ? bias.data<T>() : nullptr,
                   *const rest = residual.data<T>();
    const int64_t columns = bias.defined() ? bias.numel() : 1;
    T* const to = out.data<T>();
    bool* const kept = mask.defined() ? mask.data<bool>() : nullptr;
    const auto values_of = [=](int64_t first, int64_t count, C* values) {
      if (added) return biased(from, added, columns, first, count, values);
      for (int64_t i = 0; i < count; ++i) values[i] = load(from[first + i]);
    };
    if (kept) {
      with_draws(x.numel(), state, [=](int64_t first, int64_t count, const uint32_t* words) {
        C values[kPiece];
        values_of(first, count, values);
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) {
          const bool keep = words[i] >= threshold;
          const C v = values[i] * scale;
          kept[first + i] = keep;
          to[first + i] = static_cast<T>(load(rest[first + i]) + (keep ? v : C(0)));
        }
      });
    } else {
      const int64_t n = x.numel();
      parallel_for((n + kPiece - 1) / kPiece, kGrain / kPiece, [&](int64_t begin, int64_t end) {
        C values[kPiece];
        for (int64_t first = begin * kPiece; first < std::min(n, end * kPiece); first += kPiece) {
          const int64_t count = std::min(kPiece, n - first);
          values_of(first, count, values);
          for (int64_t i = 0; i < count; ++i) to[first + i] = static_cast<T>(load(rest[first + i]) + values[i]);
        }
      });
    }
  });
}

}  // namespace weft::cpu_kernels
