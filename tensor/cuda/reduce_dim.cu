// Operations along one dimension: extremes with their index, running sums.
#include "tensor/along.h"
#include "tensor/cuda/block.cuh"
#include "tensor/cuda/reduce.cuh"
#include "tensor/functors.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// The first best value and its place: NaN beats all numbers, nothing beats NaN.
template <class T, bool largest>
struct Extreme {
  using C = compute_t<T>;
  struct State {
    int64_t index;  // negative: none yet
    C value;
  };
  static constexpr bool kShift = false;
  T* values;
  int64_t* indices;

  /// True where x takes the place of v, which came before it.
  __device__ static bool beats(C x, C v) { return (largest ? !(x <= v) : !(x >= v)) && v == v; }

  __device__ State start() const { return {-1, C(0)}; }
  template <int N, class Places>
  __device__ void add(State& s, const C (&v)[N], Places places, C) const {
    WEFT_UNROLL
    for (int i = 0; i < N; ++i)
      if (s.index < 0 || beats(v[i], s.value)) s = {places[i], v[i]};
  }
  __device__ void merge(State& s, const State& other) const {
    if (other.index < 0) return;
    if (s.index < 0 || beats(other.value, s.value) || (other.index < s.index && !beats(s.value, other.value)))
      s = other;
  }
  __device__ void store(const State& s, int64_t at, C, int64_t) const {
    values[at] = static_cast<T>(s.value);
    indices[at] = s.index;
  }
};

template <class T>
__global__ void __launch_bounds__(kBlock)
    extreme_grad_kernel(int64_t count, int64_t n, int64_t inner, const T* dy, const int64_t* index, T* dx) {
  for (int64_t i = grid_index(); i < count; i += grid_size())
    dx[(i / inner * n + index[i]) * inner + i % inner] = dy[i];
}

/// Rows of running sums, cut into parts where they are few and long.
struct ScanWork {
  int64_t lines, n, inner, per_part;
  bool reverse;
  bool packed;  // rows: their packs lie where packs may

  /// The element of a row that is at `i` in the order of adding.
  __device__ int64_t place(int64_t i) const { return reverse ? n - 1 - i : i; }
  /// Of line `line`, its first element.
  __device__ int64_t base(int64_t line) const {
    return inner == 1 ? line * n : line / inner * n * inner + line % inner;
  }
};

/// What each part of a row adds up to; `totals` is [rows, parts].
template <class From>
__global__ void __launch_bounds__(kBlock) row_totals_kernel(ScanWork work, const From* x, sum_t<From>* totals) {
  using A = sum_t<From>;
  const int64_t begin = blockIdx.y * work.per_part, end = min(work.n, begin + work.per_part);
  x += work.base(blockIdx.x);
  A total(0);
  for (int64_t i = begin + threadIdx.x; i < end; i += kBlock)
    total = functors::add{}(total, static_cast<A>(static_cast<compute_t<From>>(x[work.place(i)])));
  total = block_reduce(total, functors::add{}, A(0));
  if (threadIdx.x == 0) totals[blockIdx.x * static_cast<int64_t>(gridDim.y) + blockIdx.y] = total;
}

/// V elements in the order of adding, from `i` on; nothing is there from `end` on.
template <int V, class A, class From>
__device__ __forceinline__ void load_run(const ScanWork& work, const From* x, int64_t i, int64_t end, A (&run)[V]) {
  if (work.packed && i + V <= end) {
    const auto pack = *reinterpret_cast<const Pack<From, V>*>(x + (work.reverse ? work.n - i - V : i));
    WEFT_UNROLL
    for (int k = 0; k < V; ++k)
      run[k] = static_cast<A>(static_cast<compute_t<From>>(work.reverse ? pack.v[V - 1 - k] : pack.v[k]));
    return;
  }
  WEFT_UNROLL
  for (int k = 0; k < V; ++k)
    run[k] = i + k < end ? static_cast<A>(static_cast<compute_t<From>>(x[work.place(i + k)])) : A(0);
}

template <int V, class A, class To>
__device__ __forceinline__ void store_run(const ScanWork& work, To* out, int64_t i, int64_t end, A before,
                                          const A (&run)[V]) {
  const auto result = [&](int k) {
    return static_cast<To>(static_cast<compute_t<To>>(functors::add{}(before, run[k])));
  };
  if (work.packed && i + V <= end) {
    Pack<To, V> pack;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) pack.v[k] = result(work.reverse ? V - 1 - k : k);
    *reinterpret_cast<Pack<To, V>*>(out + (work.reverse ? work.n - i - V : i)) = pack;
    return;
  }
  WEFT_UNROLL
  for (int k = 0; k < V; ++k)
    if (i + k < end) out[work.place(i + k)] = result(k);
}

/// A group of threads goes along a row in tiles of V elements a thread: a sum within the thread, the warp, the block,
/// and what all tiles before had.
template <class To, class From, int kThreads>
__global__ void __launch_bounds__(kBlock)
    scan_rows_kernel(ScanWork work, const From* x, const sum_t<From>* totals, To* out) {
  using A = sum_t<From>;
  constexpr int V = kReducePack<From>, kWarps = kThreads / kWarp;
  const functors::add add;
  const int thread = static_cast<int>(threadIdx.x) % kThreads, lane = thread % kWarp, warp = thread / kWarp;
  const int64_t row = blockIdx.x * int64_t{kBlock / kThreads} + static_cast<int>(threadIdx.x) / kThreads;
  if (row >= work.lines) return;  // whole warps, of blocks that have no barrier
  const int64_t begin = blockIdx.y * work.per_part, end = min(work.n, begin + work.per_part);
  x += work.base(row);
  out += work.base(row);
  A carry(0);
  if (kThreads > kWarp && blockIdx.y > 0) {
    const int64_t first = row * gridDim.y;
    for (unsigned part = threadIdx.x; part < blockIdx.y; part += kThreads) carry = add(carry, totals[first + part]);
    carry = block_reduce(carry, add, A(0));
  }
  int turn = 0;
  for (int64_t tile = begin; tile < end; tile += kThreads * V, turn ^= 1) {
    const int64_t i = tile + thread * V;
    A run[V];
    load_run(work, x, i, end, run);
    WEFT_UNROLL
    for (int k = 1; k < V; ++k) run[k] = add(run[k - 1], run[k]);
    A scan = run[V - 1];
    WEFT_UNROLL
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const A other = __shfl_up_sync(kFullWarp, scan, offset);
      if (lane >= offset) scan = add(other, scan);
    }
    A before = __shfl_up_sync(kFullWarp, scan, 1), total = __shfl_sync(kFullWarp, scan, kWarp - 1);
    if (lane == 0) before = A(0);
    if constexpr (kWarps > 1) {
      __shared__ A warps[2][kWarps];  // in turns, so that one barrier a tile is enough
      if (lane == kWarp - 1) warps[turn][warp] = scan;
      __syncthreads();
      A earlier(0);
      total = A(0);
      WEFT_UNROLL
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp) earlier = total;
        total = add(total, warps[turn][w]);
      }
      before = add(earlier, before);
    }
    store_run(work, out, i, end, add(carry, before), run);
    carry = add(carry, total);
  }
}

/// What each part of a column adds up to; `totals` is [parts, columns].
template <class From>
__global__ void __launch_bounds__(kBlock) column_totals_kernel(ScanWork work, const From* x, sum_t<From>* totals) {
  using A = sum_t<From>;
  const int64_t column = grid_index();
  if (column >= work.lines) return;
  x += work.base(column);
  const int64_t begin = blockIdx.y * work.per_part, end = min(work.n, begin + work.per_part);
  A total(0);
  for (int64_t i = begin; i < end; ++i)
    total = functors::add{}(total, static_cast<A>(static_cast<compute_t<From>>(x[work.place(i) * work.inner])));
  totals[blockIdx.y * work.lines + column] = total;
}

template <class To, class From>
__global__ void __launch_bounds__(kBlock)
    scan_columns_kernel(ScanWork work, const From* x, const sum_t<From>* totals, To* out) {
  using A = sum_t<From>;
  constexpr int kRows = 4;
  const functors::add add;
  const int64_t column = grid_index();
  if (column >= work.lines) return;
  const int64_t base = work.base(column);
  const int64_t begin = blockIdx.y * work.per_part, end = min(work.n, begin + work.per_part);
  A total(0);
  for (unsigned part = 0; part < blockIdx.y; ++part) total = add(total, totals[part * work.lines + column]);
  for (int64_t i = begin; i < end; i += kRows) {
    From rows[kRows];
    WEFT_UNROLL
    for (int k = 0; k < kRows; ++k)
      if (i + k < end) rows[k] = x[base + work.place(i + k) * work.inner];
    WEFT_UNROLL
    for (int k = 0; k < kRows; ++k) {
      if (i + k >= end) break;
      total = add(total, static_cast<A>(static_cast<compute_t<From>>(rows[k])));
      out[base + work.place(i + k) * work.inner] = static_cast<To>(static_cast<compute_t<To>>(total));
    }
  }
}

/// Rows of few elements: a warp each, in one to four tiles.
template <class To, class From>
void scan_short_rows(const ScanWork& work, const From* x, To* out) {
  launch(static_cast<unsigned>(ceil_div(work.lines, kBlock / kWarp)), kBlock, 0, scan_rows_kernel<To, From, kWarp>,
         work, x, static_cast<const sum_t<From>*>(nullptr), out);
}

/// Cuts lines into parts of whole `unit`s, at most `parts`; then `totals` and `scan` run, or scan alone where it is
/// one.
template <class From, class Totals, class Scan, class To>
void scan_parts(Totals totals, Scan scan, ScanWork work, unsigned blocks, unsigned block, int64_t parts, int64_t unit,
                const From* x, To* out, Device device) {
  using A = sum_t<From>;
  work.per_part = ceil_div(ceil_div(work.n, std::max<int64_t>(1, parts)), unit) * unit;
  parts = ceil_div(work.n, work.per_part);
  Tensor memory;
  if (parts > 1) {
    memory = empty({parts * work.lines}, {dtype_of<A>::value, device});
    launch(dim3(blocks, static_cast<unsigned>(parts)), block, 0, totals, work, x, memory.data<A>());
  }
  launch(dim3(blocks, static_cast<unsigned>(parts)), block, 0, scan, work, x,
         static_cast<const A*>(parts > 1 ? memory.data<A>() : nullptr), out);
}

template <class To, class From>
void running_sums(const Along& a, bool reverse, const From* x, To* out, Device device) {
  constexpr int V = kReducePack<From>, kTile = kBlock * V;
  ScanWork work{a.outer * a.inner, a.n, a.inner, a.n, reverse, false};
  if (a.inner == 1) {
    work.packed = a.n % V == 0 && packs_fit<V>(x, out);
    if (a.n <= 4 * kWarp * V) return scan_short_rows<To>(work, x, out);
    const int64_t parts = std::min(kEnoughBlocks / a.outer, a.n / (2 * kTile));
    scan_parts<From>(row_totals_kernel<From>, scan_rows_kernel<To, From, kBlock>, work, static_cast<unsigned>(a.outer),
                     kBlock, parts, kTile, x, out, device);
    return;
  }
  constexpr int64_t kLeastRows = 64, kMostParts = 256;
  const int64_t block = std::min<int64_t>(kBlock, ceil_div(work.lines, kWarp) * kWarp);
  const int64_t blocks = ceil_div(work.lines, block);
  const int64_t parts = std::min({kEnoughBlocks / blocks, a.n / kLeastRows, kMostParts});
  scan_parts<From>(column_totals_kernel<From>, scan_columns_kernel<To, From>, work, static_cast<unsigned>(blocks),
                   static_cast<unsigned>(block), parts, 1, x, out, device);
}

}  // namespace

void extreme(const Tensor& x, int64_t dim, bool largest, Tensor& values, Tensor& indices) {
  WEFT_ASSERT(values.is_contiguous() && indices.is_contiguous() && x.sizes()[dim] > 0);
  dispatch(x.dtype(), [&]<class T>() {
    using Read = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    auto* const to = static_cast<Read*>(values.raw_data());
    if (largest)
      reduce<Read>(Extreme<Read, true>{to, indices.data<int64_t>()}, x, values);
    else
      reduce<Read>(Extreme<Read, false>{to, indices.data<int64_t>()}, x, values);
  });
}

void extreme_grad(const Tensor& dy, const Tensor& indices, int64_t dim, Tensor& dx) {
  WEFT_ASSERT(dx.is_contiguous() && indices.is_contiguous());
  fill(dx, 0);
  if (indices.numel() == 0) return;
  const Tensor dense = raw::contiguous(dy);
  const Along a(dx, dim);
  dispatch_floating("max", dx.dtype(), [&]<class T>() {
    launch(blocks_for(indices.numel()), kBlock, 0, extreme_grad_kernel<T>, indices.numel(), a.n, a.inner,
           static_cast<const T*>(dense.data<T>()), static_cast<const int64_t*>(indices.data<int64_t>()), dx.data<T>());
  });
}

void cumsum(const Tensor& x, int64_t dim, bool reverse, Tensor& out) {
  WEFT_ASSERT(out.is_contiguous());
  if (x.numel() == 0) return;
  const Tensor dense = raw::contiguous(x);
  const Along a(dense, dim);
  dispatch(x.dtype(), [&]<class T>() {
    using Read = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    using To = std::conditional_t<FloatingElement<T>, T, int64_t>;
    running_sums<To>(a, reverse, static_cast<const Read*>(dense.raw_data()), out.data<To>(), x.device());
  });
}

}  // namespace weft::WEFT_GPU
