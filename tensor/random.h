// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// A generator is two integers, so a checkpoint stores it, every device draws the same bits, and a replay is exact.
#pragma once

#include <array>
#include <cstdint>

namespace weft {

/// Four 32-bit words from one counter under one key.
using PhiloxBlock = std::array<uint32_t, 4>;

constexpr PhiloxBlock philox(uint64_t seed, uint64_t counter, uint64_t stream = 0) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
  uint32_t c2 = static_cast<uint32_t>(stream), c3 = static_cast<uint32_t>(stream >> 32);
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// [0, 1) with 24 bits; never 1.
constexpr float to_unit_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
/// [0, 1) with 53 bits from two words.
constexpr double to_unit_double(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * 0x1p-53;
}

/// Where a kernel's draws start: element i uses word i % 4 of block `offset + i / 4` (double-width draws: word pair
/// i % 2 of block `offset + i / 2`).
struct Philox {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

/// A stream of random numbers; `take` hands a kernel its range of counters.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0) : state_{seed, 0} {}
  void seed(uint64_t seed) { state_ = {seed, 0}; }
  Philox state() const { return state_; }
  void set_state(Philox state) { state_ = state; }
  /// Reserves counters for n draws of up to 64 bits each.
  Philox take(int64_t n) {
    const Philox start = state_;
    state_.offset += static_cast<uint64_t>((n + 1) / 2);
    return start;
  }

 private:
  Philox state_;
};

/// The generator of this thread, which all random ops use by default; seeded with 0 at the start of a thread.
Generator& default_generator();
/// Seeds the default generator of this thread.
void manual_seed(uint64_t seed);

}  // namespace weft
