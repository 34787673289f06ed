// Dropout: element i, counted in memory order, uses word i % 4 of block `offset + i / 4`.
#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"

namespace weft::cpu_kernels {
namespace {

constexpr int64_t kBlocks =
    64;  // Philox blocks at a time, one lane of a vector each; so many that their latencies overlap

/// The words of kBlocks blocks from `counter` on, in order.
void draw(uint64_t seed, uint64_t counter, uint32_t* words) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int64_t b = 0; b < kBlocks; ++b) {
    c0[b] = static_cast<uint32_t>(counter + static_cast<uint64_t>(b));
    c1[b] = static_cast<uint32_t>((counter + static_cast<uint64_t>(b)) >> 32);
    c2[b] = c3[b] = 0;
  }
  auto k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int64_t b = 0; b < kBlocks; ++b) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[b], p1 = uint64_t{0xCD9E8D57u} * c2[b];
      c0[b] = static_cast<uint32_t>(p1 >> 32) ^ c1[b] ^ k0;
      c2[b] = static_cast<uint32_t>(p0 >> 32) ^ c3[b] ^ k1;
      c1[b] = static_cast<uint32_t>(p1);
      c3[b] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int64_t b = 0; b < kBlocks; ++b) {
    words[4 * b] = c0[b];
    words[4 * b + 1] = c1[b];
    words[4 * b + 2] = c2[b];
    words[4 * b + 3] = c3[b];
  }
}

}  // namespace

void dropout(const Tensor& x, double p, Philox state, Tensor& out, Tensor& mask) {
  WEFT_ASSERT(x.strides() == out.strides() && x.strides() == mask.strides());
  // Kept where the word is at least p · 2^32, with 0 < p < 1.
  const auto threshold = static_cast<uint32_t>(p * 0x1p32);
  constexpr int64_t kPiece = 4 * kBlocks;
  dispatch_floating("dropout", x.dtype(), [&]<class T>() {
    const auto scale = static_cast<compute_t<T>>(1 / (1 - p));
    const T* const from = x.data<T>();
    T* const to = out.data<T>();
    bool* const kept = mask.data<bool>();
    const int64_t n = x.numel();
    parallel_for((n + kPiece - 1) / kPiece, kGrain / kPiece, [&](int64_t begin, int64_t end) {
      uint32_t words[kPiece];
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t first = piece * kPiece, count = std::min(kPiece, n - first);
        draw(state.seed, state.offset + static_cast<uint64_t>(piece * kBlocks), words);
        // Chosen, not multiplied by the mask: what is dropped is 0 even where x is infinite.
        auto apply = [&](int64_t length) {
#pragma GCC ivdep
          for (int64_t i = 0; i < length; ++i) {
            const bool keep = words[i] >= threshold;
            const auto v = load(from[first + i]) * scale;
            kept[first + i] = keep;
            to[first + i] = static_cast<T>(keep ? v : compute_t<T>(0));
          }
        };
        if (count == kPiece)
          apply(kPiece);
        else
          apply(count);
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

}  // namespace weft::cpu_kernels
