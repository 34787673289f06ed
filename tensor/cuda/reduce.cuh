// The one loop nest behind reductions on a GPU. Where the densest dimension is reduced, a warp or a block takes an
// output; where it is kept, threads side by side take outputs side by side, and rows of threads share what is reduced.
// Few outputs of many elements are cut into parts that a second kernel joins. How the work is cut depends on
// sizes, strides and alignment alone, never on the device.
#pragma once

#include <algorithm>

#include "tensor/cuda/block.cuh"
#include "tensor/cuda/map.cuh"
#include "tensor/reduce_plan.h"

namespace weft::WEFT_GPU {

/// Chunks of an output up to which a warp takes it.
inline constexpr int64_t kWarpChunks = 256;
/// Blocks from which on work is not cut into parts.
inline constexpr int64_t kEnoughBlocks = 1024;
/// Chunks, or rows, that are read before they are added up.
inline constexpr int kAtOnce = 4;
/// Least rounds of kAtOnce chunks that a thread of a part has.
inline constexpr int64_t kLeastRounds = 2;

/// Elements of T that a thread reads at once.
template <class T>
inline constexpr int kReducePack = static_cast<int>(std::min<size_t>(8, 16 / sizeof(T)));

/// What elements of T are added up in.
template <class T>
using sum_t = std::conditional_t<FloatingElement<T>, double, int64_t>;

/// n / divisor for n below 2^62, as Divider does it for fewer.
struct WideDivider {
  uint64_t magic = 0;
  uint32_t shift = 0;

  WideDivider() = default;
  explicit WideDivider(int64_t divisor) {
    __extension__ using Wide = unsigned __int128;
    const auto d = static_cast<uint64_t>(divisor);
    while ((uint64_t{1} << shift) < d) ++shift;
    magic = static_cast<uint64_t>((Wide{(uint64_t{1} << shift) - d} << 64) / d + 1);
  }
  __device__ int64_t operator()(int64_t n) const {
    return static_cast<int64_t>((__umul64hi(static_cast<uint64_t>(n), magic) + static_cast<uint64_t>(n)) >> shift);
  }
};

/// Where chunk i of some dimensions is; a chunk is V elements of the innermost.
struct ReduceWalk {
  int ndim = 0;
  bool wide = false;  // indices pass 31 bits
  Divider divide[kMaxDims];
  WideDivider wide_divide[kMaxDims];
  int64_t size[kMaxDims], x[kMaxDims], out[kMaxDims];

  ReduceWalk(const ReduceDims& dims, int64_t V) : ndim(static_cast<int>(dims.used)), wide(dims.numel / V > INT32_MAX) {
    for (int d = 0; d < ndim; ++d) {
      const ReduceDim& from = dims.dim[static_cast<size_t>(d)];
      const int64_t step = d == 0 ? V : 1;
      size[d] = std::max<int64_t>(1, from.size / step);
      x[d] = from.x * step;
      out[d] = from.out * step;
      if (wide)
        wide_divide[d] = WideDivider(size[d]);
      else
        divide[d] = Divider(size[d]);
    }
  }

  __device__ void locate(int64_t i, int64_t& at_x, int64_t& at_out) const {
    for (int d = 0; d < ndim; ++d) {
      const bool last = d + 1 == ndim;
      const int64_t next = last ? 0 : wide ? wide_divide[d](i) : divide[d](static_cast<uint32_t>(i));
      const int64_t at = i - next * (last ? 0 : size[d]);
      at_x += at * x[d];
      at_out += at * out[d];
      i = next;
    }
  }
  __device__ int64_t locate_x(int64_t i) const {
    int64_t at_x = 0, at_out = 0;
    locate(i, at_x, at_out);
    return at_x;
  }
};

/// How a reduction is cut. Outputs go along the grid's x; parts of what is reduced along its y.
struct ReduceWork {
  int64_t outputs;   // chunks of them where threads stand side by side
  int64_t count;     // elements that each output is made of
  int64_t chunks;    // of an output: V elements each, or rows
  int64_t tail;      // elements behind an output's last chunk
  int64_t per_part;  // chunks
  int group;         // threads of an output
};

/// The place of element k of several chunks among those of an output.
template <int V>
struct ChunkPlaces {
  int64_t first, step;
  __device__ int64_t operator[](int k) const { return first + k / V * step + k % V; }
};

// A policy says what is accumulated and where results go. With T the element type and C its compute type:
//   State                                                               trivially copyable, of whole 32-bit words
//   State start() const                                                 of no elements
//   void add(State&, const C (&v)[N], ChunkPlaces<V> places, C shift) const  more elements, in rising places
//   void merge(State&, const State&) const                              another part
//   void store(const State&, int64_t at, C shift, int64_t count) const  the result
// kShift: `shift` is the first element of the output's set.

template <class T>
__device__ T shuffle_words(const T& value, int lane_mask) {
  static_assert(sizeof(T) % sizeof(uint32_t) == 0);
  constexpr int kWords = sizeof(T) / sizeof(uint32_t);
  uint32_t words[kWords];
  memcpy(words, &value, sizeof(T));
  WEFT_UNROLL
  for (int i = 0; i < kWords; ++i) words[i] = __shfl_xor_sync(kFullWarp, words[i], lane_mask);
  T result;
  memcpy(&result, words, sizeof(T));
  return result;
}

template <class P>
__device__ void warp_merge(const P& policy, typename P::State& state) {
  WEFT_UNROLL
  for (int offset = kWarp / 2; offset > 0; offset /= 2) policy.merge(state, shuffle_words(state, offset));
}

/// `Chunks` chunks of V elements along the reduced dimensions, `step` chunks apart.
template <int Chunks, int V, class T, class P>
__device__ __forceinline__ void add_chunks(const P& policy, typename P::State& state, const ReduceWalk& reduced,
                                           const T* x, int64_t chunk, int64_t step, compute_t<T> shift) {
  compute_t<T> values[Chunks * V];
  WEFT_UNROLL
  for (int u = 0; u < Chunks; ++u) {
    const auto pack = *reinterpret_cast<const Pack<T, V>*>(x + reduced.locate_x(chunk + u * step));
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) values[u * V + k] = static_cast<compute_t<T>>(pack.v[k]);
  }
  policy.add(state, values, ChunkPlaces<V>{chunk * V, step * V}, shift);
}

template <class T, int V, class P>
__global__ void __launch_bounds__(kBlock, 3) reduce_rows_kernel(P policy, ReduceWalk kept, ReduceWalk reduced,
                                                                ReduceWork work, const T* x, typename P::State* parts) {
  using State = typename P::State;
  const int lane = static_cast<int>(threadIdx.x) % work.group;
  const int64_t output = blockIdx.x * int64_t{kBlock / work.group} + static_cast<int>(threadIdx.x) / work.group;
  if (output >= work.outputs) return;  // whole warps, of blocks that have no barrier
  int64_t at = 0, to = 0;
  kept.locate(output, at, to);
  x += at;
  compute_t<T> shift{};
  if constexpr (P::kShift)
    if (work.count > 0) shift = static_cast<compute_t<T>>(*x);

  State state = policy.start();
  const int64_t begin = blockIdx.y * work.per_part, end = min(work.chunks, begin + work.per_part), step = work.group;
  int64_t i = begin + lane;
  for (; i + (kAtOnce - 1) * step < end; i += kAtOnce * step)
    add_chunks<kAtOnce, V>(policy, state, reduced, x, i, step, shift);
  for (; i < end; i += step) add_chunks<1, V>(policy, state, reduced, x, i, step, shift);
  if (V > 1 && end == work.chunks && lane < work.tail) {  // one dimension without gaps
    const int64_t place = work.chunks * V + lane;
    const compute_t<T> value[1] = {static_cast<compute_t<T>>(x[place])};
    policy.add(state, value, ChunkPlaces<1>{place, 0}, shift);
  }

  warp_merge(policy, state);
  if (work.group > kWarp) {
    __shared__ State warps[kBlock / kWarp];
    if (lane % kWarp == 0) warps[lane / kWarp] = state;
    __syncthreads();
    if (lane >= kWarp) return;
    state = lane < kBlock / kWarp ? warps[lane] : policy.start();
    warp_merge(policy, state);
  }
  if (lane > 0) return;
  if (parts)
    parts[blockIdx.y * work.outputs + output] = state;
  else
    policy.store(state, to, shift, work.count);
}

/// Rows [row, row + Rows · step) of V columns.
template <int Rows, int V, class T, class P>
__device__ __forceinline__ void add_rows(const P& policy, typename P::State (&states)[V], const ReduceWalk& reduced,
                                         const T* x, int64_t row, int64_t step, const compute_t<T> (&shift)[V]) {
  Pack<T, V> packs[Rows];
  WEFT_UNROLL
  for (int u = 0; u < Rows; ++u) packs[u] = *reinterpret_cast<const Pack<T, V>*>(x + reduced.locate_x(row + u * step));
  WEFT_UNROLL
  for (int c = 0; c < V; ++c) {
    compute_t<T> values[Rows];
    WEFT_UNROLL
    for (int u = 0; u < Rows; ++u) values[u] = static_cast<compute_t<T>>(packs[u].v[c]);
    policy.add(states[c], values, ChunkPlaces<1>{row, step}, shift[c]);
  }
}

template <class T, int V, class P>
__global__ void __launch_bounds__(kBlock, 3)
    reduce_columns_kernel(P policy, ReduceWalk kept, ReduceWalk reduced, ReduceWork work, const T* x,
                          typename P::State* parts) {
  using State = typename P::State;
  const int lane = static_cast<int>(threadIdx.y), lanes = static_cast<int>(blockDim.y);
  const int64_t output = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  const bool inside = output < work.outputs;
  int64_t at = 0, to = 0;
  State states[V];
  compute_t<T> shift[V] = {};
  WEFT_UNROLL
  for (int c = 0; c < V; ++c) states[c] = policy.start();
  if (inside) {
    kept.locate(output, at, to);
    x += at;
    if constexpr (P::kShift)
      if (work.count > 0) {
        WEFT_UNROLL
        for (int c = 0; c < V; ++c) shift[c] = static_cast<compute_t<T>>(x[c]);
      }
    const int64_t begin = blockIdx.y * work.per_part, end = min(work.chunks, begin + work.per_part);
    int64_t row = begin + lane;
    for (; row + (kAtOnce - 1) * lanes < end; row += kAtOnce * lanes)
      add_rows<kAtOnce, V>(policy, states, reduced, x, row, lanes, shift);
    for (; row < end; row += lanes) add_rows<1, V>(policy, states, reduced, x, row, lanes, shift);
  }
  merge_columns<V>(states, [&policy](State& a, const State& b) { policy.merge(a, b); });
  if (!inside || lane > 0) return;
  WEFT_UNROLL
  for (int c = 0; c < V; ++c) {
    if (parts)
      parts[(blockIdx.y * work.outputs + output) * V + c] = states[c];
    else
      policy.store(states[c], to + c * (kept.out[0] / V), shift[c], work.count);
  }
}

/// A warp an output joins its parts, which are `outputs` apart.
template <class T, class P>
__global__ void __launch_bounds__(kBlock)
    join_parts_kernel(P policy, ReduceWalk kept, int64_t outputs, int count_of_parts, int64_t count, const T* x,
                      const typename P::State* parts) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int64_t output = blockIdx.x * int64_t{kBlock / kWarp} + static_cast<int>(threadIdx.x) / kWarp;
  if (output >= outputs) return;
  typename P::State state = policy.start();
  for (int i = lane; i < count_of_parts; i += kWarp) policy.merge(state, parts[i * outputs + output]);
  warp_merge(policy, state);
  if (lane > 0) return;
  int64_t at = 0, to = 0;
  kept.locate(output, at, to);
  compute_t<T> shift{};
  if constexpr (P::kShift) shift = static_cast<compute_t<T>>(x[at]);
  policy.store(state, to, shift, count);
}

namespace detail {

inline bool multiples(const ReduceDims& dims, size_t from, int64_t V) {
  for (size_t d = from; d < dims.used; ++d)
    if (dims.dim[d].x % V != 0) return false;
  return true;
}
/// True where `across` starts a chunk at every V-th element of its innermost dimension, wherever `other` is.
inline bool in_chunks(const ReduceDims& across, const ReduceDims& other, int64_t V, const void* x, int64_t bytes) {
  return across.used > 0 && across.dim[0].x == 1 && multiples(across, 1, V) && multiples(other, 0, V) &&
         is_aligned(x, V * bytes);
}

/// Runs both kernels, or the one that is enough. `parts` of them, at most as many as there are.
template <class T, class P, class Kernel>
void launch_parts(Kernel kernel, const P& policy, const ReducePlan& plan, const ReduceWalk& kept,
                  const ReduceWalk& reduced, ReduceWork work, int64_t blocks, dim3 block, int64_t parts, const T* x,
                  Device device) {
  using State = typename P::State;
  work.per_part = std::max<int64_t>(1, ceil_div(work.chunks, std::max<int64_t>(1, parts)));
  parts = std::max<int64_t>(1, ceil_div(work.chunks, work.per_part));
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(parts));
  if (parts == 1) return launch(grid, block, 0, kernel, policy, kept, reduced, work, x, static_cast<State*>(nullptr));
  const int64_t outputs = plan.kept.numel;
  const Tensor memory = empty({parts * outputs * static_cast<int64_t>(sizeof(State))}, {u8, device});
  auto* const states = static_cast<State*>(memory.raw_data());
  launch(grid, block, 0, kernel, policy, kept, reduced, work, x, states);
  launch(static_cast<unsigned>(ceil_div(outputs, kBlock / kWarp)), kBlock, 0, join_parts_kernel<T, P>, policy,
         ReduceWalk(plan.kept, 1), outputs, static_cast<int>(parts), work.count, x, static_cast<const State*>(states));
}

template <int V, class T, class P>
void reduce_rows(const P& policy, const ReducePlan& plan, const T* x, Device device) {
  const int64_t outputs = plan.kept.numel, count = plan.reduced.numel, chunks = count / V;
  const int group = chunks <= kWarpChunks ? kWarp : kBlock;
  const int64_t blocks = ceil_div(outputs, kBlock / group);
  const int64_t parts =
      group == kWarp ? 1 : std::min(kEnoughBlocks / blocks, chunks / (kBlock * kAtOnce * kLeastRounds));
  launch_parts(&reduce_rows_kernel<T, V, P>, policy, plan, ReduceWalk(plan.kept, 1), ReduceWalk(plan.reduced, V),
               {outputs, count, chunks, count % V, 0, group}, blocks, kBlock, parts, x, device);
}

template <int V, class T, class P>
void reduce_columns(const P& policy, const ReducePlan& plan, const T* x, Device device) {
  const int64_t outputs = plan.kept.numel / V, count = plan.reduced.numel;
  const dim3 block = block_of_columns(count, outputs);
  const int64_t lanes = block.y, blocks = ceil_div(outputs, block.x);
  const int64_t parts = lanes == 1 ? 1 : std::min(kEnoughBlocks / blocks, count / (lanes * kAtOnce * kLeastRounds));
  launch_parts(&reduce_columns_kernel<T, V, P>, policy, plan, ReduceWalk(plan.kept, V), ReduceWalk(plan.reduced, 1),
               {outputs, count, count, 0, 0, static_cast<int>(lanes)}, blocks, block, parts, x, device);
}

}  // namespace detail

/// Reduces x, whose elements are read as T, into what `policy` holds: of the sizes and strides of `out`, which has 1
/// for every reduced dimension.
template <class T, class P>
void reduce(const P& policy, const Tensor& x, const Tensor& out) {
  if (out.numel() == 0) return;
  const ReducePlan plan(x, out);
  const auto* const from = static_cast<const T*>(x.raw_data());
  constexpr int V = kReducePack<T>, kColumns = std::min(4, V);
  if (plan.columns || plan.reduced.numel <= kAloneElements) {
    if (plan.kept.used > 0 && plan.kept.dim[0].size % kColumns == 0 &&
        detail::in_chunks(plan.kept, plan.reduced, kColumns, from, sizeof(T)))
      detail::reduce_columns<kColumns>(policy, plan, from, x.device());
    else
      detail::reduce_columns<1>(policy, plan, from, x.device());
  } else if ((plan.reduced.used == 1 || plan.reduced.dim[0].size % V == 0) &&
             detail::in_chunks(plan.reduced, plan.kept, V, from, sizeof(T))) {
    detail::reduce_rows<V>(policy, plan, from, x.device());
  } else {
    detail::reduce_rows<1>(policy, plan, from, x.device());
  }
}

}  // namespace weft::WEFT_GPU
