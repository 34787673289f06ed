// Tiles of attention: what the products of queries, keys and values go through in shared memory and registers.
#pragma once

#include "tensor/cuda/block.cuh"
#include "tensor/step_values.h"

namespace weft::WEFT_GPU {

inline constexpr int kSide = 16;  // threads along each side of a tile
static_assert(kSide * kSide == kBlock);

/// Blocks of a multiprocessor that registers must suffice for.
template <class C>
inline constexpr int kResidentTiles = sizeof(C) == 4 ? 2 : 1;

/// Elements of one access; also what a row in shared memory is longer than its width, so that rows begin on different
/// banks.
template <class C>
inline constexpr int kPack = static_cast<int>(16 / sizeof(C));

/// [B, H, rows, D] with a dense last dimension.
template <class C>
struct Operand {
  C* data;
  int64_t batch, head, row;  // strides
  bool packed;               // rows can be read in packs

  explicit Operand(const Tensor& x)
      : data(x.data<std::remove_const_t<C>>()),
        batch(x.strides()[0]),
        head(x.strides()[1]),
        row(x.strides()[2]),
        packed(packs_fit<kPack<C>>(data) && (x.sizes()[3] | batch | head | row) % kPack<C> == 0) {}
  __device__ C* at(int64_t b, int64_t h) const { return data + b * batch + h * head; }
};

template <class C>
struct Problem {
  int64_t heads, sharing, queries, keys;  // `sharing` heads have a group of keys
  int width;
  C scale;
  bool causal;
  const bool* mask;
  int64_t mask_batch, mask_key;
  uint32_t threshold;  // of a kept probability's word; 0: no dropout
  C kept;
  StepValue<Philox> state;

  Problem(const Tensor& q, const Tensor& k, const Tensor& mask_any, const AttentionParameters& p, Philox draws)
      : heads(q.sizes()[1]),
        sharing(heads / k.sizes()[1]),
        queries(q.sizes()[2]),
        keys(k.sizes()[2]),
        width(static_cast<int>(q.sizes()[3])),
        scale(static_cast<C>(p.scale)),
        causal(p.causal),
        mask(mask_any.defined() ? mask_any.data<bool>() : nullptr),
        mask_batch(mask ? mask_any.strides()[0] : 0),
        mask_key(mask ? mask_any.strides()[1] : 0),
        threshold(static_cast<uint32_t>(p.dropout * 0x1p32)),
        kept(static_cast<C>(1 / (1 - p.dropout))),
        state(p.dropout > 0 ? step_value(draws) : StepValue<Philox>{}) {}

  /// Query t sees the keys up to t + look_back().
  __device__ int64_t look_back() const { return keys - queries; }
  __device__ bool allows(int64_t b, int64_t s) const {
    return s < keys && (!mask || mask[b * mask_batch + s * mask_key]);
  }
  /// What the probabilities of N keys from s on are multiplied by for query t; N divides s, and 4.
  template <int N>
  __device__ void draw(int64_t head, int64_t t, int64_t s, C (&factors)[N]) const {
    const Philox from = state.get();
    const PhiloxBlock words =
        philox(from.seed, from.offset + static_cast<uint64_t>((head * ceil_div(keys, 4) + s / 4) * queries + t));
    WEFT_UNROLL
    for (int k = 0; k < N; ++k) {
      const int64_t i = (s + k) % 4;
      const uint32_t word = i < 2 ? (i == 0 ? words[0] : words[1]) : (i == 2 ? words[2] : words[3]);
      factors[k] = word >= threshold ? kept : C(0);
    }
  }
};

__device__ __forceinline__ int across() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ __forceinline__ int down() { return static_cast<int>(threadIdx.x) / kSide; }

/// Floats of a tile in shared memory.
template <class C, int rows, int width>
inline constexpr int kTile = rows*(width + kPack<C>);

/// Rows from `first` on into shared memory; row r + 16 i is number r · rows / 16 + i, so that the rows of a thread are
/// neighbours. What `wanted` refuses is zero, and not read.
template <class C, int rows, int D, class Wanted>
__device__ void load_tile(const C* from, int64_t step, bool packed, int64_t first, int width, const Wanted& wanted,
                          C* to) {
  constexpr int V = kPack<C>, kPacks = D / V, kEach = rows / kSide;
  for (int i = static_cast<int>(threadIdx.x); i < rows * kPacks; i += kBlock) {
    const int r = i / kPacks, d = i % kPacks * V;
    const int64_t row = first + r % kSide * kEach + r / kSide;
    const bool there = wanted(row);
    Pack<C, V> pack;
    if (packed && there && d < width) {
      pack = load_pack<V>(from + row * step + d);
    } else {
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) pack.v[k] = there && d + k < width ? from[row * step + d + k] : C(0);
    }
    store_pack(to + r * (D + V) + d, pack);
  }
}

/// out[i][j] = Σ a[row down + 16 i] · b[row across + 16 j].
template <class C, int D, int A, int B>
__device__ __forceinline__ void row_products(const C* a, const C* b, C (&out)[A][B]) {
  constexpr int V = kPack<C>, kStep = D + V;
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) WEFT_UNROLL
  for (int j = 0; j < B; ++j) out[i][j] = 0;
  a += down() * kStep;
  b += across() * kStep;
#pragma unroll 1
  for (int d = 0; d < D; d += V) {
    Pack<C, V> left[A], right[B];
    WEFT_UNROLL
    for (int i = 0; i < A; ++i) left[i] = load_pack<V>(a + i * kSide * kStep + d);
    WEFT_UNROLL
    for (int j = 0; j < B; ++j) right[j] = load_pack<V>(b + j * kSide * kStep + d);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) WEFT_UNROLL
    for (int i = 0; i < A; ++i) WEFT_UNROLL
    for (int j = 0; j < B; ++j) out[i][j] += left[i].v[k] * right[j].v[k];
  }
}

/// The columns of a row of D that a thread has: groups of W neighbours.
template <class C, int D>
struct Columns {
  static constexpr int kCount = D / kSide, W = kCount < kPack<C> ? kCount : kPack<C>, kGroups = kCount / W;
  __device__ static int first(int group) { return (group * kSide + across()) * W; }
};

/// sum[i][columns] += Σ_k p[row down + 16 i][k] · x[k][columns].
template <class C, int D, int depth, int A>
__device__ __forceinline__ void add_products(const C* p, const C* x, C (&sum)[A][D / kSide]) {
  constexpr int V = kPack<C>, kStep = depth + V;
  using Mine = Columns<C, D>;
  p += down() * kStep;
#pragma unroll 1
  for (int k = 0; k < depth; k += V) {
    Pack<C, V> left[A];
    WEFT_UNROLL
    for (int i = 0; i < A; ++i) left[i] = load_pack<V>(p + i * kSide * kStep + k);
    WEFT_UNROLL
    for (int u = 0; u < V; ++u) WEFT_UNROLL
    for (int g = 0; g < Mine::kGroups; ++g) {
      const auto right = load_pack<Mine::W>(x + (k + u) * (D + V) + Mine::first(g));
      WEFT_UNROLL
      for (int i = 0; i < A; ++i) WEFT_UNROLL
      for (int w = 0; w < Mine::W; ++w) sum[i][g * Mine::W + w] += left[i].v[u] * right.v[w];
    }
  }
}

/// A thread's small matrix into shared memory.
template <class C, int depth, int A, int B>
__device__ __forceinline__ void store_tile(const C (&values)[A][B], C* to) {
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) WEFT_UNROLL
  for (int j = 0; j < B; ++j) to[(down() + kSide * i) * (depth + kPack<C>)+across() + kSide * j] = values[i][j];
}

/// A thread's part of the rows from `first` on, of `rows` in all.
template <class C, int D, int A>
__device__ __forceinline__ void store_rows(const C (&sum)[A][D / kSide], const C (&scale)[A], C* to, int64_t step,
                                           int64_t first, int64_t rows, int width) {
  using Mine = Columns<C, D>;
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) {
    const int64_t row = first + down() * A + i;
    if (row >= rows) continue;
    WEFT_UNROLL
    for (int g = 0; g < Mine::kGroups; ++g) WEFT_UNROLL
    for (int w = 0; w < Mine::W; ++w)
      if (Mine::first(g) + w < width) to[row * step + Mine::first(g) + w] = sum[i][g * Mine::W + w] * scale[i];
  }
}

/// Which tile of which head a block has. Late tiles come first: with causality they have most to do.
struct Place {
  int64_t head, first;
  __device__ Place(int64_t rows, int tile) {
    const int64_t tiles = ceil_div(rows, tile);
    head = blockIdx.x / tiles;
    first = (tiles - 1 - blockIdx.x % tiles) * tile;
  }
};

}  // namespace weft::WEFT_GPU
