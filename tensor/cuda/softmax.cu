// Softmax and its logarithm along one dimension, with their gradients. A row that fits is held in the registers of a
// warp or a block and read once; a longer one is read twice, its maximum and sum found together (Milakov and Gimelshein
// 2018). A row without a finite maximum (all -infinity, or an infinity in it) gives NaN, in that row only.
#include <algorithm>

#include "tensor/along.h"
#include "tensor/cuda/block.cuh"
#include "tensor/functors.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

namespace math = gpu_math;

template <class T>
constexpr int kSoftmaxPack = static_cast<int>(16 / sizeof(T));

/// Packs of a row that a group of threads holds: thread t has packs t, t + kThreads…; beyond the row is `filler`.
template <int kThreads, int V, int K, class T>
__device__ __forceinline__ void load_row(const T* row, int n, int thread, compute_t<T> filler,
                                         compute_t<T> (&held)[K * V]) {
  WEFT_UNROLL
  for (int k = 0; k < K; ++k) {
    const int at = (k * kThreads + thread) * V;
    const bool inside = at < n;
    Pack<T, V> pack;
    if (inside) pack = *reinterpret_cast<const Pack<T, V>*>(row + at);
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) held[k * V + i] = inside ? static_cast<compute_t<T>>(pack.v[i]) : filler;
  }
}

template <int kThreads, int V, int K, class T>
__device__ __forceinline__ void store_row(T* row, int n, int thread, const compute_t<T> (&held)[K * V]) {
  WEFT_UNROLL
  for (int k = 0; k < K; ++k) {
    const int at = (k * kThreads + thread) * V;
    if (at >= n) continue;
    Pack<T, V> pack;
    WEFT_UNROLL
    for (int i = 0; i < V; ++i) pack.v[i] = static_cast<T>(held[k * V + i]);
    *reinterpret_cast<Pack<T, V>*>(row + at) = pack;
  }
}

/// Rows of at most kThreads · V · K elements; n is a multiple of V.
template <bool logarithm, int kThreads, int V, int K, class T>
__global__ void __launch_bounds__(kBlock) held_rows_kernel(int64_t rows, int n, const T* x, T* y) {
  using C = compute_t<T>;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t row = blockIdx.x * int64_t{kBlock / kThreads} + static_cast<int>(threadIdx.x) / kThreads;
  if (row >= rows) return;  // whole warps, of blocks that have no barrier
  C held[K * V];
  load_row<kThreads, V, K>(x + row * n, n, thread, -INFINITY, held);
  C most = -INFINITY;
  WEFT_UNROLL
  for (int i = 0; i < K * V; ++i) most = held[i] > most ? held[i] : most;
  most = group_reduce<kThreads>(most, Max{}, C(-INFINITY));
  C total = 0;
  WEFT_UNROLL
  for (int i = 0; i < K * V; ++i) {
    held[i] -= most;
    const C e = math::exp(held[i]);
    total += e;
    if constexpr (!logarithm) held[i] = e;
  }
  total = group_reduce<kThreads>(total, Sum{}, C(0));
  const C last = logarithm ? math::log(total) : C(1) / total;
  WEFT_UNROLL
  for (int i = 0; i < K * V; ++i) held[i] = logarithm ? held[i] - last : held[i] * last;
  store_row<kThreads, V, K>(y + row * n, n, thread, held);
}

/// The largest value so far, and the sum of exponentials around it.
template <class C>
struct Online {
  C most = -INFINITY;
  double total = 0;

  __device__ static double scale(C from, C to) { return from == to ? 1.0 : static_cast<double>(math::exp(from - to)); }

  template <int N>
  __device__ void add(const C (&v)[N]) {
    C best = most;
    WEFT_UNROLL
    for (int i = 0; i < N; ++i) best = v[i] > best ? v[i] : best;
    if (best != most) {
      total *= scale(most, best);
      most = best;
    }
    C sum = 0;
    WEFT_UNROLL
    for (int i = 0; i < N; ++i) sum += v[i] == C(-INFINITY) ? C(0) : math::exp(v[i] - most);
    total += static_cast<double>(sum);
  }
  __device__ void merge(const Online& other) {
    const C best = other.most > most ? other.most : most;
    total = total * scale(most, best) + other.total * scale(other.most, best);
    most = best;
  }
};

/// The last step for one element, from what its row came to.
template <bool logarithm, class C>
struct Finish {
  C most, last;
  __device__ explicit Finish(const Online<C>& row)
      : most(row.most), last(static_cast<C>(logarithm ? math::log(row.total) : 1 / row.total)) {}
  __device__ C operator()(C v) const { return logarithm ? (v - most) - last : math::exp(v - most) * last; }
};

template <int V, class T>
__device__ __forceinline__ void load_values(const T* from, compute_t<T>* values) {
  const auto pack = load_pack<V>(from);
  WEFT_UNROLL
  for (int i = 0; i < V; ++i) values[i] = static_cast<compute_t<T>>(pack.v[i]);
}

/// A block a row of any length that is a multiple of V.
template <bool logarithm, int V, class T>
__global__ void __launch_bounds__(kBlock) long_rows_kernel(int64_t n, const T* x, T* y) {
  using C = compute_t<T>;
  constexpr int kAtOnce = 4;
  constexpr int64_t step = kBlock * V;
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  Online<C> mine;
  int64_t i = static_cast<int>(threadIdx.x) * V;
  for (; i + (kAtOnce - 1) * step < n; i += kAtOnce * step) {
    C values[kAtOnce * V];
    WEFT_UNROLL
    for (int u = 0; u < kAtOnce; ++u) load_values<V>(x + i + u * step, values + u * V);
    mine.add(values);
  }
  for (; i < n; i += step) {
    C values[V];
    load_values<V>(x + i, values);
    mine.add(values);
  }
  Online<C> row;
  row.most = block_max(mine.most);
  row.total = block_sum(mine.total * Online<C>::scale(mine.most, row.most));
  const Finish<logarithm, C> finish(row);
  for (i = static_cast<int>(threadIdx.x) * V; i < n; i += step) {
    C values[V];
    load_values<V>(x + i, values);
    Pack<T, V> pack;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) pack.v[k] = static_cast<T>(finish(values[k]));
    *reinterpret_cast<Pack<T, V>*>(y + i) = pack;
  }
}

/// Columns side by side, each shared by the threads of one threadIdx.x.
struct Columns {
  int64_t columns, n, inner;

  __device__ int64_t column() const { return blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x; }
  __device__ int64_t base() const { return column() / inner * n * inner + column() % inner; }
};

/// All threads of a column get what their parts make together.
template <class State, class Merge>
__device__ void merge_column(State& state, const Merge& merge) {
  if (blockDim.y == 1) return;
  __shared__ State all[kWarp];  // columns that are shared stand at most a warp wide
  State one[1] = {state};
  merge_columns<1>(one, merge);
  if (threadIdx.y == 0) all[threadIdx.x] = one[0];
  __syncthreads();
  state = all[threadIdx.x];
}

template <bool logarithm, class T>
__global__ void __launch_bounds__(kBlock) columns_kernel(Columns work, const T* x, T* y) {
  using C = compute_t<T>;
  struct State {
    C most;
    double total;
  };
  constexpr int kAtOnce = 4;
  const bool inside = work.column() < work.columns;
  const int64_t base = inside ? work.base() : 0, n = inside ? work.n : 0, lanes = blockDim.y;
  Online<C> mine;
  int64_t r = threadIdx.y;
  for (; r + (kAtOnce - 1) * lanes < n; r += kAtOnce * lanes) {
    C values[kAtOnce];
    WEFT_UNROLL
    for (int u = 0; u < kAtOnce; ++u) values[u] = static_cast<C>(x[base + (r + u * lanes) * work.inner]);
    mine.add(values);
  }
  for (; r < n; r += lanes) {
    const C value[1] = {static_cast<C>(x[base + r * work.inner])};
    mine.add(value);
  }
  State state{mine.most, mine.total};
  merge_column(state, [](State& a, const State& b) {
    Online<C> sum{a.most, a.total};
    sum.merge({b.most, b.total});
    a = {sum.most, sum.total};
  });
  const Finish<logarithm, C> finish(Online<C>{state.most, state.total});
  for (r = threadIdx.y; r < n; r += lanes) {
    const int64_t at = base + r * work.inner;
    y[at] = static_cast<T>(finish(static_cast<C>(x[at])));
  }
}

// The gradients: dx = y (dy - Σ dy y), and dy - e^y Σ dy for the logarithm.
template <bool logarithm, class C>
__device__ C grad_term(C dy, C y) {
  return logarithm ? dy : dy * y;
}
template <bool logarithm, class C>
__device__ C grad_of(C dy, C y, C total) {
  return logarithm ? dy - math::exp(y) * total : y * (dy - total);
}

template <bool logarithm, int kThreads, int V, int K, class T>
__global__ void __launch_bounds__(kBlock) held_rows_grad_kernel(int64_t rows, int n, const T* dy, const T* y, T* dx) {
  using C = compute_t<T>;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t row = blockIdx.x * int64_t{kBlock / kThreads} + static_cast<int>(threadIdx.x) / kThreads;
  if (row >= rows) return;  // whole warps, of blocks that have no barrier
  C g[K * V], v[K * V];
  load_row<kThreads, V, K>(dy + row * n, n, thread, C(0), g);
  load_row<kThreads, V, K>(y + row * n, n, thread, C(0), v);
  C total = 0;
  WEFT_UNROLL
  for (int i = 0; i < K * V; ++i) total += grad_term<logarithm>(g[i], v[i]);
  total = group_reduce<kThreads>(total, Sum{}, C(0));
  WEFT_UNROLL
  for (int i = 0; i < K * V; ++i) g[i] = grad_of<logarithm>(g[i], v[i], total);
  store_row<kThreads, V, K>(dx + row * n, n, thread, g);
}

template <bool logarithm, int V, class T>
__global__ void __launch_bounds__(kBlock) long_rows_grad_kernel(int64_t n, const T* dy, const T* y, T* dx) {
  using C = compute_t<T>;
  const int64_t first = static_cast<int>(threadIdx.x) * V, step = kBlock * V;
  dy += blockIdx.x * n;
  y += blockIdx.x * n;
  dx += blockIdx.x * n;
  C g[V], v[V];
  double mine = 0;
  for (int64_t i = first; i < n; i += step) {
    load_values<V>(dy + i, g);
    load_values<V>(y + i, v);
    C sum = 0;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) sum += grad_term<logarithm>(g[k], v[k]);
    mine += static_cast<double>(sum);
  }
  const C total = static_cast<C>(block_sum(mine));
  for (int64_t i = first; i < n; i += step) {
    load_values<V>(dy + i, g);
    load_values<V>(y + i, v);
    Pack<T, V> pack;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) pack.v[k] = static_cast<T>(grad_of<logarithm>(g[k], v[k], total));
    *reinterpret_cast<Pack<T, V>*>(dx + i) = pack;
  }
}

template <bool logarithm, class T>
__global__ void __launch_bounds__(kBlock) columns_grad_kernel(Columns work, const T* dy, const T* y, T* dx) {
  using C = compute_t<T>;
  const bool inside = work.column() < work.columns;
  const int64_t base = inside ? work.base() : 0, n = inside ? work.n : 0, lanes = blockDim.y;
  double total = 0;
  for (int64_t r = threadIdx.y; r < n; r += lanes) {
    const int64_t at = base + r * work.inner;
    total += static_cast<double>(grad_term<logarithm>(static_cast<C>(dy[at]), static_cast<C>(y[at])));
  }
  merge_column(total, [](double& a, double b) { a += b; });
  for (int64_t r = threadIdx.y; r < n; r += lanes) {
    const int64_t at = base + r * work.inner;
    dx[at] = static_cast<T>(grad_of<logarithm>(static_cast<C>(dy[at]), static_cast<C>(y[at]), static_cast<C>(total)));
  }
}

template <int kThreads, class Kernel, class... Pointers>
void launch_held(Kernel kernel, const Along& a, Pointers... pointers) {
  const int64_t rows_of_block = kBlock / kThreads;
  launch(static_cast<unsigned>(ceil_div(a.outer, rows_of_block)), kBlock, 0, kernel, a.outer, static_cast<int>(a.n),
         pointers...);
}

template <class Kernel, class... Pointers>
void launch_columns(Kernel kernel, const Along& a, Pointers... pointers) {
  const int64_t columns = a.outer * a.inner;
  const dim3 block = block_of_columns(a.n, columns);
  launch(static_cast<unsigned>(ceil_div(columns, block.x)), block, 0, kernel, Columns{columns, a.n, a.inner},
         pointers...);
}

template <bool logarithm, int V, class T>
void softmax_rows(const Along& a, const T* x, T* y) {
  if (a.n <= kWarp * V * 2) return launch_held<kWarp>(held_rows_kernel<logarithm, kWarp, V, 2, T>, a, x, y);
  if (a.n <= kWarp * V * 8) return launch_held<kWarp>(held_rows_kernel<logarithm, kWarp, V, 8, T>, a, x, y);
  if (a.n <= kBlock * V * 8) return launch_held<kBlock>(held_rows_kernel<logarithm, kBlock, V, 8, T>, a, x, y);
  launch(static_cast<unsigned>(a.outer), kBlock, 0, long_rows_kernel<logarithm, V, T>, a.n, x, y);
}

template <bool logarithm, int V, class T>
void grad_rows(const Along& a, const T* dy, const T* y, T* dx) {
  if (a.n <= kWarp * V) return launch_held<kWarp>(held_rows_grad_kernel<logarithm, kWarp, V, 1, T>, a, dy, y, dx);
  if (a.n <= kWarp * V * 4) return launch_held<kWarp>(held_rows_grad_kernel<logarithm, kWarp, V, 4, T>, a, dy, y, dx);
  if (a.n <= kBlock * V * 4)
    return launch_held<kBlock>(held_rows_grad_kernel<logarithm, kBlock, V, 4, T>, a, dy, y, dx);
  launch(static_cast<unsigned>(a.outer), kBlock, 0, long_rows_grad_kernel<logarithm, V, T>, a.n, dy, y, dx);
}

template <bool logarithm>
void run(const char* op, const Tensor& x, int64_t dim, Tensor& out) {
  WEFT_ASSERT(out.is_contiguous());
  if (x.numel() == 0) return;
  const Tensor dense = raw::contiguous(x);
  const Along a(dense, dim);
  dispatch_floating(op, x.dtype(), [&]<class T>() {
    constexpr int V = kSoftmaxPack<T>;
    const T* from = dense.data<T>();
    T* to = out.data<T>();
    if (a.inner > 1)
      launch_columns(columns_kernel<logarithm, T>, a, from, to);
    else if (a.n % V == 0 && packs_fit<V>(from, to))
      softmax_rows<logarithm, V>(a, from, to);
    else
      softmax_rows<logarithm, 1>(a, from, to);
  });
}

template <bool logarithm>
void run_grad(const char* op, const Tensor& dy, const Tensor& y, int64_t dim, Tensor& dx) {
  WEFT_ASSERT(y.is_contiguous() && dx.is_contiguous());
  if (y.numel() == 0) return;
  const Tensor dense = raw::contiguous(dy);
  const Along a(y, dim);
  dispatch_floating(op, y.dtype(), [&]<class T>() {
    constexpr int V = kSoftmaxPack<T>;
    const T *g = dense.data<T>(), *v = y.data<T>();
    T* to = dx.data<T>();
    if (a.inner > 1)
      launch_columns(columns_grad_kernel<logarithm, T>, a, g, v, to);
    else if (a.n % V == 0 && packs_fit<V>(g, v, to))
      grad_rows<logarithm, V>(a, g, v, to);
    else
      grad_rows<logarithm, 1>(a, g, v, to);
  });
}

}  // namespace

void softmax(const Tensor& x, int64_t dim, Tensor& y) { run<false>("softmax", x, dim, y); }
void log_softmax(const Tensor& x, int64_t dim, Tensor& y) { run<true>("log_softmax", x, dim, y); }
void softmax_grad(const Tensor& dy, const Tensor& y, int64_t dim, Tensor& dx) {
  run_grad<false>("softmax", dy, y, dim, dx);
}
void log_softmax_grad(const Tensor& dy, const Tensor& y, int64_t dim, Tensor& dx) {
  run_grad<true>("log_softmax", dy, y, dim, dx);
}

}  // namespace weft::WEFT_GPU
