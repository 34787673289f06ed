// Philox as vector code.
#pragma once

#include <cstdint>

namespace weft::cpu_kernels {

/// Philox blocks at a time, one lane of a vector each; so many that their latencies overlap
inline constexpr int64_t kBlocks = 64;

/// The words of kBlocks blocks from `counter` on: word w of block b is words[w][b].
inline void draw_planes(uint64_t seed, uint64_t counter, uint32_t (&words)[4][kBlocks]) {
  auto& [c0, c1, c2, c3] = words;
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
}

/// The same in order, one block after another.
inline void draw(uint64_t seed, uint64_t counter, uint32_t* words) {
  uint32_t planes[4][kBlocks];
  draw_planes(seed, counter, planes);
  for (int64_t b = 0; b < kBlocks; ++b)
    for (int64_t w = 0; w < 4; ++w) words[4 * b + w] = planes[w][b];
}

}  // namespace weft::cpu_kernels
