// A stable sort of (key, position) by rising keys: least significant digit first, 8 bits a pass (Satish, Harris and
// Garland 2009). A pass counts the digits of each tile, adds the counts up before each (digit, tile), and moves the
// elements there in their order. Nothing depends on the order in which blocks run.
#pragma once

#include <bit>

#include "tensor/cuda/gpu.cuh"

namespace weft::WEFT_GPU {

inline constexpr int kDigits = 256, kSortItems = 8, kSortTile = kBlock * kSortItems;
static_assert(kDigits == kBlock, "a thread a digit");

template <class Key>
__device__ __forceinline__ unsigned digit_of(Key key, int shift) {
  return static_cast<unsigned>(key >> shift) % kDigits;
}

/// Σ of value over the lanes up to this one.
template <class T>
__device__ __forceinline__ T sum_up_to_lane(T value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  WEFT_UNROLL
  for (int offset = 1; offset < kWarp; offset *= 2) {
    const T lower = __shfl_up_sync(kFullWarp, value, offset);
    if (lane >= offset) value += lower;
  }
  return value;
}

/// counts[digit, tile]: how often the digit is in the tile.
template <class Key, class Count>
__global__ void __launch_bounds__(kBlock) count_digits_kernel(const Key* keys, int64_t n, int shift, Count* counts) {
  __shared__ unsigned count[kDigits];
  count[threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSortTile;
  for (int r = 0; r < kSortItems; ++r) {
    const int64_t i = first + r * kBlock + threadIdx.x;
    if (i < n) atomicAdd(&count[digit_of(keys[i], shift)], 1u);
  }
  __syncthreads();
  counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = count[threadIdx.x];
}

/// A warp a digit: each count becomes the sum of those before it, totals[digit] the sum of all.
template <class Count>
__global__ void __launch_bounds__(kBlock) add_up_counts_kernel(Count* counts, int64_t tiles, Count* totals) {
  constexpr int kAtOnce = 4;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t digit = grid_index() / kWarp;
  Count* const of_digit = counts + digit * tiles;
  Count before = 0;
  for (int64_t first = lane; first - lane < tiles; first += kAtOnce * kWarp) {
    Count value[kAtOnce];
    WEFT_UNROLL
    for (int k = 0; k < kAtOnce; ++k) value[k] = first + k * kWarp < tiles ? of_digit[first + k * kWarp] : Count(0);
    WEFT_UNROLL
    for (int k = 0; k < kAtOnce && first - lane + k * kWarp < tiles; ++k) {
      const Count sum = before + sum_up_to_lane(value[k]);
      if (first + k * kWarp < tiles) of_digit[first + k * kWarp] = sum - value[k];
      before = __shfl_sync(kFullWarp, sum, kWarp - 1);
    }
  }
  if (lane == 0) totals[digit] = before;
}

/// Moves the elements of a tile; a warp has a run of them. `positions` is null where they are 0, 1, 2, …
template <class Key, class Position>
__global__ void __launch_bounds__(kBlock)
    move_by_digit_kernel(const Key* keys, const Position* positions, int64_t n, int shift, const Position* counts,
                         const Position* totals, Key* to_keys, Position* to_positions) {
  constexpr int kWarps = kBlock / kWarp;
  __shared__ unsigned count[kWarps][kDigits];
  __shared__ Position start[kDigits], warp_sums[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  WEFT_UNROLL
  for (int w = 0; w < kWarps; ++w) count[w][threadIdx.x] = 0;
  const Position total = totals[threadIdx.x], up_to = sum_up_to_lane(total);
  if (lane == kWarp - 1) warp_sums[warp] = up_to;
  __syncthreads();

  // An element's rank among those of its digit in its warp: earlier rounds first, then lower lanes.
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kSortTile + warp * (kWarp * kSortItems) + lane;
  Key key[kSortItems];
  unsigned rank[kSortItems];
  WEFT_UNROLL
  for (int r = 0; r < kSortItems; ++r) {
    const int64_t i = first + r * kWarp;
    key[r] = i < n ? keys[i] : Key(0);
    const unsigned digit = i < n ? digit_of(key[r], shift) : kDigits;
    const unsigned peers = __match_any_sync(kFullWarp, digit), lower = __popc(peers & ((1u << lane) - 1));
    rank[r] = i < n ? count[warp][digit] + lower : 0;
    __syncwarp();
    if (i < n && lower == 0) count[warp][digit] += __popc(peers);
    __syncwarp();
  }
  __syncthreads();

  // Thread d: where digit d begins for this tile, and in it for each warp.
  Position begin = counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] + up_to - total;
  unsigned lower = 0;
  WEFT_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) begin += warp_sums[w];
    const unsigned here = count[w][threadIdx.x];
    count[w][threadIdx.x] = lower;
    lower += here;
  }
  start[threadIdx.x] = begin;
  __syncthreads();
  WEFT_UNROLL
  for (int r = 0; r < kSortItems; ++r) {
    const int64_t i = first + r * kWarp;
    if (i >= n) continue;
    const unsigned digit = digit_of(key[r], shift);
    const Position to = start[digit] + count[warp][digit] + rank[r];
    to_keys[to] = key[r];
    to_positions[to] = positions ? positions[i] : static_cast<Position>(i);
  }
}

/// Temporary memory for n values of T.
template <class T>
struct Room {
  Tensor memory;

  Room() = default;
  Room(int64_t n, Device device) : memory(empty({n * static_cast<int64_t>(sizeof(T))}, {DType::u8, device})) {}
  T* data() const { return memory.defined() ? static_cast<T*>(memory.raw_data()) : nullptr; }
};

template <class Key, class Position>
struct Sorted {
  Room<Key> keys;
  Room<Position> positions;
};

/// Sorts n > 0 keys of which the lowest `bits` bits count. Without positions they are 0, 1, 2, …
template <class Key, class Position>
Sorted<Key, Position> sort_by_key(const Sorted<Key, Position>& list, int64_t n, int bits) {
  const Device device = list.keys.memory.device();
  const int64_t tiles = ceil_div(n, kSortTile);
  const auto grid = static_cast<unsigned>(tiles);
  const Room<Position> counts(kDigits * tiles, device), totals(kDigits, device);
  Sorted<Key, Position> from = list, to{{n, device}, {n, device}}, spare;
  for (int shift = 0; shift == 0 || shift < bits; shift += 8) {
    launch(grid, kBlock, 0, count_digits_kernel<Key, Position>, from.keys.data(), n, shift, counts.data());
    launch(kDigits * kWarp / kBlock, kBlock, 0, add_up_counts_kernel<Position>, counts.data(), tiles, totals.data());
    launch(grid, kBlock, 0, move_by_digit_kernel<Key, Position>, from.keys.data(), from.positions.data(), n, shift,
           counts.data(), totals.data(), to.keys.data(), to.positions.data());
    const bool last = shift + 8 >= bits;
    if (!last && !spare.keys.memory.defined()) spare = {{n, device}, {n, device}};
    from = to;
    if (!last) std::swap(to, spare);
  }
  return from;
}

}  // namespace weft::WEFT_GPU
