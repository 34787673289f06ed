// Walks over the elements of each channel, of rows [rows, C] or of planes [N, C, S]. A block takes some channels and a
// part of their elements. Parts depend on sizes only and are joined in order, so results are the same on every device.
#pragma once

#include "tensor/cuda/map.cuh"

namespace weft::WEFT_GPU {

inline constexpr int kWarps = kBlock / kWarp;
/// Items that a thread takes at once.
inline constexpr int kUnroll = 4;
/// Blocks beyond which channels are not cut into more parts: for sums, which are joined after, and for maps.
inline constexpr int64_t kSumBlocks = 512, kMapBlocks = 2048;

/// T's elements in 128 bits.
template <class T>
inline constexpr int kWide = static_cast<int>(16 / sizeof(T));

inline bool is_aligned(const Tensor& t, int64_t bytes) { return !t.defined() || is_aligned(t.raw_data(), bytes); }

/// n / divisor for any n; fast below 2^31.
struct Quotient {
  int64_t divisor = 1;
  Divider fast;
  bool slow = false;

  Quotient() = default;
  Quotient(int64_t d, int64_t most) : divisor(d < 1 ? 1 : d), slow(most >= int64_t{1} << 31) {
    if (!slow) fast = Divider(divisor);
  }
  __device__ int64_t operator()(int64_t n) const {
    return slow ? n / divisor : static_cast<int64_t>(fast(static_cast<uint32_t>(n)));
  }
};

/// How channels lie in memory: element (r, c) at r · C + c, or else (n, c, s) at (n · C + c) · S + s.
struct Channels {
  bool last;
  int64_t c, s, rows;  // rows: elements of a channel
};

/// What the blocks of a grid take. An item is one row's V channels, or V neighbours in a plane.
struct Tiles {
  int64_t c, s;
  int64_t count, part, parts;  // items of a channel, of a block, and blocks of a channel
  int64_t item_values;         // of one channel in an item
  int lanes = 1;               // threads side by side along the channels: 2^lane_bits
  int lane_bits = 0;
  dim3 grid;
  Quotient plane_of;  // an item's, of planes

  Tiles(const Channels& at, int V, int64_t blocks) : c(at.c), s(at.s), item_values(at.last ? 1 : V) {
    int64_t across = c;
    if (at.last) {
      const int64_t packs = c / V;
      while (lanes < kWarp && lanes < packs) lanes = 1 << ++lane_bits;
      across = ceil_div(packs, lanes);
      count = at.rows;
    } else {
      count = at.rows / V;
      plane_of = Quotient(s / V, count);
    }
    const int64_t of_a_block = kBlock / lanes * kUnroll;
    const int64_t most = blocks < across ? 1 : blocks / across, wanted = ceil_div(count, of_a_block);
    parts = wanted < 1 ? 1 : wanted < most ? wanted : most;
    part = ceil_div(count, parts);
    if (part > 0) parts = ceil_div(count, part);
    grid = dim3(static_cast<unsigned>(across), static_cast<unsigned>(parts));
  }

  /// Elements of a channel in one part.
  __device__ int64_t values_in(int64_t p) const {
    const int64_t rest = count - p * part;
    return (rest < part ? rest : part) * item_values;
  }
};

/// The items of one thread; Last: rows.
template <int V, bool Last>
struct Walk {
  /// Channels that a thread stands on, and threads side by side along the channels.
  static constexpr int kChannels = Last ? V : 1, kMostLanes = Last ? kWarp : 1;

  const Tiles& tiles;
  int64_t channel;  // the first
  int64_t first, end;
  int step = kBlock;

  __device__ explicit Walk(const Tiles& t) : tiles(t) {
    const int64_t begin = blockIdx.y * t.part;
    end = begin + t.part < t.count ? begin + t.part : t.count;
    if constexpr (Last) {
      step >>= t.lane_bits;
      const int lane = static_cast<int>(threadIdx.x) & (t.lanes - 1);
      channel = (static_cast<int64_t>(blockIdx.x) * t.lanes + lane) * V;
      first = begin + (threadIdx.x >> t.lane_bits);
    } else {
      channel = blockIdx.x;
      first = begin + threadIdx.x;
    }
    if (channel >= t.c) end = first;
  }

  __device__ int64_t offset(int64_t item) const {
    if constexpr (Last) {
      return item * tiles.c + channel;
    } else {
      const int64_t n = tiles.plane_of(item);
      return (n * tiles.c + channel) * tiles.s + (item - n * tiles.plane_of.divisor) * V;
    }
  }

  /// f<U>(item) for U items at a time: item, item + step, …
  template <class F>
  __device__ __forceinline__ void each(const F& f) const {
    int64_t item = first;
    for (; item + (kUnroll - 1) * step < end; item += kUnroll * step) f.template operator()<kUnroll>(item);
    for (; item < end; item += step) f.template operator()<1>(item);
  }
};

/// f<V, Last>(tiles) with as wide items as the layout allows; `aligned`: every operand begins at 128 bits.
template <class T, bool Last, class F>
void with_tiles_of(const Channels& at, int64_t blocks, bool aligned, const F& f) {
  constexpr int V = kWide<T>;
  if (aligned && (Last ? at.c : at.s) % V == 0)
    f.template operator()<V, Last>(Tiles(at, V, blocks));
  else
    f.template operator()<1, Last>(Tiles(at, 1, blocks));
}
template <class T, class F>
void with_tiles(const Channels& at, int64_t blocks, bool aligned, const F& f) {
  at.last ? with_tiles_of<T, true>(at, blocks, aligned, f) : with_tiles_of<T, false>(at, blocks, aligned, f);
}

/// Mean and squared deviations of `count` values, joined as Chan, Golub and LeVeque (1983) do.
template <class C>
struct Moments {
  C count, mean, squares;

  /// With b's share of all values, and that times the count here, which are the same for many.
  __device__ void join(C b_mean, C b_squares, C share, C weight) {
    const C apart = b_mean - mean;
    mean += apart * share;
    squares += b_squares + apart * apart * weight;
  }
  __device__ void join(const Moments& b) {
    const C all = count + b.count, share = all > C(0) ? b.count / all : C(0);
    join(b.mean, b.squares, share, count * share);
    count = all;
  }
  __device__ Moments from_lane(int lane_mask) const {
    return {__shfl_xor_sync(kFullWarp, count, lane_mask), __shfl_xor_sync(kFullWarp, mean, lane_mask),
            __shfl_xor_sync(kFullWarp, squares, lane_mask)};
  }
  /// Those of the warp's first lane: what a join gives to a and b differs in the last bits.
  __device__ Moments from_first() const {
    return {__shfl_sync(kFullWarp, count, 0), __shfl_sync(kFullWarp, mean, 0), __shfl_sync(kFullWarp, squares, 0)};
  }
};

/// A quotient of two counts; a few units in the last place of a float do no harm.
__device__ __forceinline__ float share_of(float part, float all) { return __fdividef(part, all); }
__device__ __forceinline__ double share_of(double part, double all) { return part / all; }

/// Joins G values to each of A moments, all of `count` values.
template <int A, int G, class C>
__device__ __forceinline__ void join_values(Moments<C> (&to)[A], C& count, const C (&values)[A][G]) {
  const C all = count + C(G), share = share_of(C(G), all), weight = count * share;
  WEFT_UNROLL
  for (int a = 0; a < A; ++a) {
    C mean = 0, squares = 0;
    WEFT_UNROLL
    for (int g = 0; g < G; ++g) mean += values[a][g];
    mean *= C(1) / C(G);
    WEFT_UNROLL
    for (int g = 0; g < G; ++g) squares += (values[a][g] - mean) * (values[a][g] - mean);
    to[a].join(mean, squares, share, weight);
  }
  count = all;
}

template <class C>
struct Sums {
  C first, second;

  __device__ void join(const Sums& b) {
    first += b.first;
    second += b.second;
  }
  __device__ Sums from_lane(int lane_mask) const {
    return {__shfl_xor_sync(kFullWarp, first, lane_mask), __shfl_xor_sync(kFullWarp, second, lane_mask)};
  }
  __device__ Sums from_first() const { return *this; }
};

/// The join over all threads of a block that stand on the same A channels, `lanes` threads side by side, both powers
/// of 2. Every thread gets the result of channel threadIdx.x % (lanes · A) of the block, in the same bits. Once in a
/// kernel.
template <int MostLanes, int A, class S>
__device__ S block_join(S (&mine)[A], int lanes) {
  __shared__ S parts[kWarps][MostLanes * A];
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  for (int offset = kWarp / 2; offset >= lanes; offset /= 2) {
    WEFT_UNROLL
    for (int a = 0; a < A; ++a) mine[a].join(mine[a].from_lane(offset));
  }
  if (lane < lanes) {
    WEFT_UNROLL
    for (int a = 0; a < A; ++a) parts[warp][lane * A + a] = mine[a];
  }
  __syncthreads();
  const int at = static_cast<int>(threadIdx.x) & (lanes * A - 1);
  S all = parts[0][at];
  WEFT_UNROLL
  for (int w = 1; w < kWarps; ++w) all.join(parts[w][at]);
  return all;
}

/// Writes a block's sums, one of each channel, to its part of partial [parts, 2, C].
template <int V, bool Last, class C>
__device__ void store_part(const Tiles& t, C a, C b, C* partial) {
  constexpr int A = Walk<V, Last>::kChannels;
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * t.lanes * A + threadIdx.x;
  if (static_cast<int>(threadIdx.x) >= t.lanes * A || channel >= t.c) return;
  partial[blockIdx.y * 2 * t.c + channel] = a;
  partial[(blockIdx.y * 2 + 1) * t.c + channel] = b;
}

/// Warps that share the parts of 32 channels when these are joined.
inline constexpr int kJoinWarps = 16;

/// Σ f(part) in double for the channel of this lane; every warp gets it.
template <class F>
__device__ double sum_of_parts(int64_t parts, double (&shared)[kJoinWarps][kWarp], const F& f) {
  const int lane = static_cast<int>(threadIdx.x % kWarp), warp = static_cast<int>(threadIdx.x / kWarp);
  double total = 0;
  for (int64_t p = warp; p < parts; p += kJoinWarps) total += static_cast<double>(f(p));
  shared[warp][lane] = total;
  __syncthreads();
  total = 0;
  WEFT_UNROLL
  for (int w = 0; w < kJoinWarps; ++w) total += shared[w][lane];
  return total;
}

/// finish(channel, Σ first, Σ second) for every channel of partial [parts, 2, C].
template <class C, class Finish>
__global__ void __launch_bounds__(kJoinWarps* kWarp)
    join_channel_parts_kernel(const C* partial, int64_t parts, int64_t channels, Finish finish) {
  __shared__ double firsts[kJoinWarps][kWarp], seconds[kJoinWarps][kWarp];
  const int64_t channel = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x % kWarp;
  const C* const from = partial + (channel < channels ? channel : channels - 1);
  const double first = sum_of_parts(parts, firsts, [&](int64_t p) { return from[p * 2 * channels]; });
  const double second = sum_of_parts(parts, seconds, [&](int64_t p) { return from[(p * 2 + 1) * channels]; });
  if (threadIdx.x < kWarp && channel < channels) finish(channel, first, second);
}

template <class C, class Finish>
void join_parts(const C* partial, int64_t parts, int64_t channels, const Finish& finish) {
  if (channels == 0) return;
  launch(static_cast<unsigned>(ceil_div(channels, kWarp)), kJoinWarps * kWarp, 0, join_channel_parts_kernel<C, Finish>,
         partial, parts, channels, finish);
}

/// Per channel Σ dy and Σ dy · deviation(x, item, channel), in parts.
template <class T, int V, bool Last, class Deviation>
__global__ void __launch_bounds__(kBlock, kResident)
    gradient_sums_kernel(Tiles t, Deviation deviation, const T* dy, const T* x, compute_t<T>* partial) {
  using C = compute_t<T>;
  constexpr int A = Walk<V, Last>::kChannels;
  const Walk<V, Last> walk(t);
  Sums<C> sums[A] = {};
  walk.each([&]<int U>(int64_t item) {
    Pack<T, V> g[U], v[U];
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      g[u] = load_pack<V>(dy + walk.offset(item + u * walk.step));
      v[u] = load_pack<V>(x + walk.offset(item + u * walk.step));
    }
    WEFT_UNROLL
    for (int u = 0; u < U; ++u) {
      WEFT_UNROLL
      for (int k = 0; k < V; ++k) {
        const int a = Last ? k : 0;
        const C d = static_cast<C>(g[u].v[k]);
        sums[a].first += d;
        sums[a].second += d * deviation(static_cast<C>(v[u].v[k]), item + u * walk.step, walk.channel + a);
      }
    }
  });
  const Sums<C> all = block_join<Walk<V, Last>::kMostLanes>(sums, t.lanes);
  store_part<V, Last>(t, all.first, all.second, partial);
}

/// Writes the sums of each channel where they are wanted.
template <class C>
struct WriteSums {
  C *dweight, *dbias;
  __device__ void operator()(int64_t channel, double first, double second) const {
    if (dweight) dweight[channel] = static_cast<C>(second);
    if (dbias) dbias[channel] = static_cast<C>(first);
  }
};

template <class C>
C* data_or_null(const Tensor& t) {
  return t.defined() ? t.data<C>() : nullptr;
}

}  // namespace weft::WEFT_GPU
