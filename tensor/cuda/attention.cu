// Attention in tiles of queries and keys that pass through shared memory (after Dao, "FlashAttention-2", 2023,
// arXiv:2307.08691): scores are never stored. Forward and gradient of queries take a block for each tile of queries,
// the gradient of keys and values one for each tile of keys, so no sums meet between blocks. 16 × 16 threads have a
// small matrix of each product in registers. Compute is f32 or f64; 16-bit operands are converted around it.
// Backward of heads wider than 64 wants 72 KB of shared memory a block: more than Turing has.
#include <algorithm>

#include "tensor/cuda/attention.cuh"
#include "tensor/functors.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

template <class C, int D, int Q, int K>
__global__ void __launch_bounds__(kBlock, kResidentTiles<C>)
    attention_kernel(Problem<C> n, Operand<const C> q, Operand<const C> k, Operand<const C> v, Operand<C> out, C* lse) {
  constexpr int A = Q / kSide, B = K / kSide;
  C* const q_tile = dynamic_shared<C>();
  C* const kv_tile = q_tile + kTile<C, Q, D>;
  C* const p_tile = kv_tile + kTile<C, K, D>;
  const Place place(n.queries, Q);
  const int64_t b = place.head / n.heads, h = place.head % n.heads;
  const C *const keys = k.at(b, h / n.sharing), *const values = v.at(b, h / n.sharing);
  const auto allowed = [&](int64_t s) { return n.allows(b, s); };
  load_tile<C, Q, D>(
      q.at(b, h), q.row, q.packed, place.first, n.width, [&](int64_t t) { return t < n.queries; }, q_tile);
  C sum[A][D / kSide] = {}, total[A] = {}, largest[A];
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) largest[i] = -static_cast<C>(INFINITY);
  const int64_t end = n.causal ? std::min<int64_t>(n.keys, place.first + Q + n.look_back()) : n.keys;
  for (int64_t first = 0; first < end; first += K) {
    if (first > 0) __syncthreads();  // the values before have been read
    load_tile<C, K, D>(keys, k.row, k.packed, first, n.width, allowed, kv_tile);
    __syncthreads();
    C p[A][B];
    row_products<C, D>(q_tile, kv_tile, p);
    const int64_t s = first + across() * B;
    bool open[B];
    WEFT_UNROLL
    for (int j = 0; j < B; ++j) open[j] = allowed(s + j);
    WEFT_UNROLL
    for (int i = 0; i < A; ++i) {
      const int64_t t = place.first + down() * A + i;
      const C before = largest[i];
      WEFT_UNROLL
      for (int j = 0; j < B; ++j) {
        const bool sees = open[j] && (!n.causal || s + j <= t + n.look_back());
        p[i][j] = sees ? p[i][j] * n.scale : -static_cast<C>(INFINITY);
        largest[i] = Max{}(largest[i], p[i][j]);
      }
      largest[i] = warp_reduce<kSide>(largest[i], Max{});
      const C around = largest[i] == -static_cast<C>(INFINITY) ? C(0) : largest[i];
      const C factor = gpu_math::exp(before - around);
      total[i] *= factor;
      WEFT_UNROLL
      for (int j = 0; j < B; ++j) {
        p[i][j] = gpu_math::exp(p[i][j] - around);
        total[i] += p[i][j];
      }
      if (n.threshold) {
        C factors[B];
        n.draw(place.head, t, s, factors);
        WEFT_UNROLL
        for (int j = 0; j < B; ++j) p[i][j] *= factors[j];
      }
      WEFT_UNROLL
      for (int d = 0; d < D / kSide; ++d) sum[i][d] *= factor;
    }
    __syncthreads();  // the keys have been read
    store_tile<C, K>(p, p_tile);
    load_tile<C, K, D>(values, v.row, v.packed, first, n.width, allowed, kv_tile);
    __syncthreads();
    add_products<C, D, K>(p_tile, kv_tile, sum);
  }
  C scale[A];
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) {
    const int64_t t = place.first + down() * A + i;
    const C all = warp_reduce<kSide>(total[i], Sum{});
    scale[i] = all == 0 ? C(0) : 1 / all;
    if (across() == 0 && t < n.queries)
      lse[place.head * n.queries + t] = all == 0 ? static_cast<C>(INFINITY) : largest[i] + gpu_math::log(all);
  }
  store_rows<C, D>(sum, scale, out.at(b, h), out.row, place.first, n.queries, n.width);
}

/// delta = Σ dout · out of each query, by a warp.
template <class C>
__global__ void __launch_bounds__(kBlock) delta_kernel(int64_t rows, int64_t heads, int64_t queries, int width,
                                                       Operand<const C> dout, Operand<const C> out, C* delta) {
  const int64_t row = grid_index() / kWarp, head = row / queries, t = row % queries;
  if (row >= rows) return;
  const C* const a = dout.at(head / heads, head % heads) + t * dout.row;
  const C* const b = out.at(head / heads, head % heads) + t * out.row;
  C sum = 0;
  for (int d = static_cast<int>(threadIdx.x) % kWarp; d < width; d += kWarp) sum += a[d] * b[d];
  sum = warp_reduce(sum, Sum{});
  if (threadIdx.x % kWarp == 0) delta[row] = sum;
}

template <class C, int D, int Q, int K>
__global__ void __launch_bounds__(kBlock, kResidentTiles<C>)
    query_grad_kernel(Problem<C> n, Operand<const C> q, Operand<const C> k, Operand<const C> v, Operand<const C> dout,
                      const C* lse, const C* delta, Operand<C> dq) {
  constexpr int A = Q / kSide, B = K / kSide;
  C* const q_tile = dynamic_shared<C>();
  C* const dout_tile = q_tile + kTile<C, Q, D>;
  C* const k_tile = dout_tile + kTile<C, Q, D>;
  C* const v_tile = k_tile + kTile<C, K, D>;
  C* const ds_tile = v_tile + kTile<C, K, D>;
  const Place place(n.queries, Q);
  const int64_t b = place.head / n.heads, h = place.head % n.heads;
  const auto allowed = [&](int64_t s) { return n.allows(b, s); };
  const auto there = [&](int64_t t) { return t < n.queries; };
  load_tile<C, Q, D>(q.at(b, h), q.row, q.packed, place.first, n.width, there, q_tile);
  load_tile<C, Q, D>(dout.at(b, h), dout.row, dout.packed, place.first, n.width, there, dout_tile);
  C sum[A][D / kSide] = {}, row_lse[A], row_delta[A];
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) {
    const int64_t t = place.first + down() * A + i;
    row_lse[i] = there(t) ? lse[place.head * n.queries + t] : static_cast<C>(INFINITY);
    row_delta[i] = there(t) ? delta[place.head * n.queries + t] : C(0);
  }
  const int64_t end = n.causal ? std::min<int64_t>(n.keys, place.first + Q + n.look_back()) : n.keys;
  for (int64_t first = 0; first < end; first += K) {
    if (first > 0) __syncthreads();  // keys and scores before have been read
    load_tile<C, K, D>(k.at(b, h / n.sharing), k.row, k.packed, first, n.width, allowed, k_tile);
    load_tile<C, K, D>(v.at(b, h / n.sharing), v.row, v.packed, first, n.width, allowed, v_tile);
    __syncthreads();
    C p[A][B], ds[A][B];
    row_products<C, D>(q_tile, k_tile, p);
    row_products<C, D>(dout_tile, v_tile, ds);
    const int64_t s = first + across() * B;
    WEFT_UNROLL
    for (int i = 0; i < A; ++i) {
      const int64_t t = place.first + down() * A + i;
      C factors[B];
      if (n.threshold) n.draw(place.head, t, s, factors);
      WEFT_UNROLL
      for (int j = 0; j < B; ++j) {
        const bool sees = allowed(s + j) && (!n.causal || s + j <= t + n.look_back());
        const C e = sees ? gpu_math::exp(p[i][j] * n.scale - row_lse[i]) : C(0);
        ds[i][j] = e * ((n.threshold ? ds[i][j] * factors[j] : ds[i][j]) - row_delta[i]);
      }
    }
    store_tile<C, K>(ds, ds_tile);
    __syncthreads();
    add_products<C, D, K>(ds_tile, k_tile, sum);
  }
  C scale[A];
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) scale[i] = n.scale;
  store_rows<C, D>(sum, scale, dq.at(b, h), dq.row, place.first, n.queries, n.width);
}

/// Either result may be absent, with null data.
template <class C, int D, int K, int Q>
__global__ void __launch_bounds__(kBlock, kResidentTiles<C>)
    key_grad_kernel(Problem<C> n, Operand<const C> q, Operand<const C> k, Operand<const C> v, Operand<const C> dout,
                    const C* lse, const C* delta, Operand<C> dk, Operand<C> dv) {
  constexpr int A = K / kSide, B = Q / kSide;
  C* const k_tile = dynamic_shared<C>();
  C* const v_tile = k_tile + kTile<C, K, D>;
  C* const q_tile = v_tile + kTile<C, K, D>;
  C* const dout_tile = q_tile + kTile<C, Q, D>;
  C* const p_tile = dout_tile + kTile<C, Q, D>;
  const Place place(n.keys, K);
  const int64_t groups = n.heads / n.sharing, b = place.head / groups, g = place.head % groups;
  const auto allowed = [&](int64_t s) { return n.allows(b, s); };
  const auto there = [&](int64_t t) { return t < n.queries; };
  load_tile<C, K, D>(k.at(b, g), k.row, k.packed, place.first, n.width, allowed, k_tile);
  load_tile<C, K, D>(v.at(b, g), v.row, v.packed, place.first, n.width, allowed, v_tile);
  C k_sum[A][D / kSide] = {}, v_sum[A][D / kSide] = {};
  const int64_t s = place.first + down() * A;
  const int64_t start = n.causal ? std::max<int64_t>(0, place.first - n.look_back()) / Q * Q : 0;
  for (int64_t h = g * n.sharing; h < (g + 1) * n.sharing; ++h)
    for (int64_t first = start; first < n.queries; first += Q) {
      __syncthreads();  // the queries before have been read
      load_tile<C, Q, D>(q.at(b, h), q.row, q.packed, first, n.width, there, q_tile);
      load_tile<C, Q, D>(dout.at(b, h), dout.row, dout.packed, first, n.width, there, dout_tile);
      __syncthreads();
      C p[A][B], ds[A][B];
      row_products<C, D>(k_tile, q_tile, p);
      row_products<C, D>(v_tile, dout_tile, ds);
      const int64_t head = b * n.heads + h;
      WEFT_UNROLL
      for (int j = 0; j < B; ++j) {
        const int64_t t = first + across() * B + j;
        const C query_lse = there(t) ? lse[head * n.queries + t] : static_cast<C>(INFINITY);
        const C query_delta = there(t) ? delta[head * n.queries + t] : C(0);
        C factors[A];
        if (n.threshold) n.draw(head, t, s, factors);
        WEFT_UNROLL
        for (int i = 0; i < A; ++i) {
          const bool sees = allowed(s + i) && (!n.causal || s + i <= t + n.look_back());
          const C e = sees ? gpu_math::exp(p[i][j] * n.scale - query_lse) : C(0);
          const C factor = n.threshold ? factors[i] : C(1);
          p[i][j] = e * factor;
          ds[i][j] = e * (ds[i][j] * factor - query_delta);
        }
      }
      store_tile<C, Q>(p, p_tile);
      __syncthreads();
      add_products<C, D, Q>(p_tile, dout_tile, v_sum);
      __syncthreads();  // the probabilities have been read
      store_tile<C, Q>(ds, p_tile);
      __syncthreads();
      add_products<C, D, Q>(p_tile, q_tile, k_sum);
    }
  C k_scale[A], v_scale[A];
  WEFT_UNROLL
  for (int i = 0; i < A; ++i) {
    k_scale[i] = n.scale;
    v_scale[i] = 1;
  }
  if (dk.data) store_rows<C, D>(k_sum, k_scale, dk.at(b, g), dk.row, place.first, n.keys, n.width);
  if (dv.data) store_rows<C, D>(v_sum, v_scale, dv.at(b, g), dv.row, place.first, n.keys, n.width);
}

/// Tiles for heads of a width up to D: rows of the tile that stays, and of those that pass, forward and backward.
template <class C, int D_, int Stay, int Pass, int StayBack, int PassBack>
struct Tiles {
  using Type = C;
  static constexpr int D = D_, kStay = Stay, kPass = Pass, kStayBack = StayBack, kPassBack = PassBack;
};

/// f(Tiles{}) with those for heads of this width.
template <class F>
void with_tiles(DType dtype, int64_t width, const F& f) {
  if (dtype == f64) {
    if (width <= 64) return f(Tiles<double, 64, 32, 32, 32, 16>{});
    return f(Tiles<double, 256, 16, 16, 16, 16>{});
  }
  if (width <= 32) return f(Tiles<float, 32, 64, 64, 64, 32>{});
  if (width <= 64) return f(Tiles<float, 64, 64, 64, 64, 32>{});
  if (width <= 128) return f(Tiles<float, 128, 64, 32, 32, 32>{});
  return f(Tiles<float, 256, 32, 16, 16, 16>{});
}

unsigned blocks_of(int64_t heads, int64_t rows, int64_t tile) {
  return static_cast<unsigned>(heads * ceil_div(rows, tile));
}

bool is_half(const Tensor& x) { return size_of(x.dtype()) == 2; }
Tensor widened(const Tensor& x) { return x.defined() && is_half(x) ? raw::to(x, f32) : x; }
/// Where a result of f32 goes that is wanted in 16 bits.
Tensor wide_result(const Tensor& x) { return x.defined() && is_half(x) ? empty_like(x, f32) : x; }
void narrow_result(const Tensor& wide, Tensor& out) {
  if (out.defined() && is_half(out)) copy(wide, out);
}

/// An operand that may be absent.
template <class C>
Operand<C> operand_or_none(const Tensor& x, const Tensor& like) {
  Operand<C> operand(x.defined() ? x : like);
  if (!x.defined()) operand.data = nullptr;
  return operand;
}

}  // namespace

void attention(const Tensor& q_any, const Tensor& k_any, const Tensor& v_any, const Tensor& mask,
               const AttentionParameters& parameters, Philox state, Tensor& out, Tensor& lse) {
  if (lse.numel() == 0) return;
  const Tensor q = widened(q_any), k = widened(k_any), v = widened(v_any);
  Tensor wide = wide_result(out);
  with_tiles(q.dtype(), q.sizes()[3], [&]<class X>(X) {
    using C = typename X::Type;
    constexpr int D = X::D, Q = X::kStay, K = X::kPass;
    constexpr size_t shared = sizeof(C) * (kTile<C, Q, D> + kTile<C, K, D> + kTile<C, Q, K>);
    launch(blocks_of(q.sizes()[0] * q.sizes()[1], q.sizes()[2], Q), kBlock, shared, attention_kernel<C, D, Q, K>,
           Problem<C>(q, k, mask, parameters, state), Operand<const C>(q), Operand<const C>(k), Operand<const C>(v),
           Operand<C>(wide), lse.data<C>());
  });
  narrow_result(wide, out);
}

void attention_grad(const Tensor& dout_any, const Tensor& q_any, const Tensor& k_any, const Tensor& v_any,
                    const Tensor& mask, const Tensor& out_any, const Tensor& lse, const AttentionParameters& parameters,
                    Philox state, Tensor& dq_any, Tensor& dk_any, Tensor& dv_any) {
  const Tensor dout = widened(dout_any), q = widened(q_any), k = widened(k_any), v = widened(v_any),
               out = widened(out_any);
  const int64_t heads = q.sizes()[0] * q.sizes()[1], queries = q.sizes()[2], keys = k.sizes()[2];
  if (heads == 0) return;
  Tensor dq = wide_result(dq_any), dk = wide_result(dk_any), dv = wide_result(dv_any), delta = empty_like(lse);
  with_tiles(q.dtype(), q.sizes()[3], [&]<class X>(X) {
    using C = typename X::Type;
    constexpr int D = X::D, Stay = X::kStayBack, Pass = X::kPassBack;
    constexpr size_t shared = sizeof(C) * (2 * kTile<C, Stay, D> + 2 * kTile<C, Pass, D> + kTile<C, Stay, Pass>);
    const Problem<C> problem(q, k, mask, parameters, state);
    const Operand<const C> q_rows(q), k_rows(k), v_rows(v), dout_rows(dout);
    const C* const row_lse = lse.data<C>();
    if (lse.numel() > 0)
      launch(static_cast<unsigned>(ceil_div(lse.numel(), kBlock / kWarp)), kBlock, 0, delta_kernel<C>, lse.numel(),
             problem.heads, queries, problem.width, dout_rows, Operand<const C>(out), delta.data<C>());
    if (dq.defined() && lse.numel() > 0)
      launch(blocks_of(heads, queries, Stay), kBlock, shared, query_grad_kernel<C, D, Stay, Pass>, problem, q_rows,
             k_rows, v_rows, dout_rows, row_lse, delta.data<C>(), Operand<C>(dq));
    if ((dk.defined() || dv.defined()) && keys > 0)
      launch(blocks_of(k.sizes()[0] * k.sizes()[1], keys, Stay), kBlock, shared, key_grad_kernel<C, D, Stay, Pass>,
             problem, q_rows, k_rows, v_rows, dout_rows, row_lse, delta.data<C>(), operand_or_none<C>(dk, dv),
             operand_or_none<C>(dv, dk));
  });
  narrow_result(dq, dq_any);
  narrow_result(dk, dk_any);
  narrow_result(dv, dv_any);
}

}  // namespace weft::WEFT_GPU
