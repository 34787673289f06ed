// Attention over tiles of queries and keys (after Dao, "FlashAttention-2", 2023, arXiv:2307.08691): the scores of a
// tile live in the cache and are made again by the backward pass. Queries lie along vector lanes, so that softmax goes
// down columns. Keys that the mask excludes are left out when a tile is loaded: they cost nothing, and are never read.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "tensor/cpu/draw.h"
#include "tensor/cpu/loop.h"
#include "tensor/cpu/math.h"
#include "tensor/cpu/rows.h"
#include "tensor/cpu/vector_product.h"
#include "tensor/kernels.h"
#include "tensor/threads.h"

namespace weft::cpu_kernels {
namespace {

constexpr int64_t kQueries = 64;  // of a tile; as many as `draw` has blocks
constexpr int64_t kKeys = 48;     // a multiple of the row counts of products

template <class C>
constexpr C kInfinite = std::numeric_limits<C>::infinity();

int64_t in_lanes(int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

struct Sizes {
  int64_t batch, heads, groups, queries, keys, width;
  int64_t padded;     // width in whole vectors
  int64_t tile;       // queries of a tile, in whole vectors
  int64_t tiles;      // of queries
  int64_t look_back;  // with causality query t sees key s where s <= t + look_back
  int64_t grain;      // tiles of queries that are worth a thread

  Sizes(const Tensor& q, const Tensor& k)
      : batch(q.sizes()[0]),
        heads(q.sizes()[1]),
        groups(k.sizes()[1]),
        queries(q.sizes()[2]),
        keys(k.sizes()[2]),
        width(q.sizes()[3]),
        padded(in_lanes(width)),
        tile(std::min(kQueries, in_lanes(queries))),
        tiles(tile ? (queries + tile - 1) / tile : 0),
        look_back(keys - queries),
        grain(1 + (int64_t{1} << 18) / std::max<int64_t>(1, tile * keys * padded)) {}
};

/// The keys that each sample's queries may attend to, in order.
class Allowed {
 public:
  Allowed(const Tensor& mask, int64_t batch, int64_t keys) : lists_(mask.defined() ? static_cast<size_t>(batch) : 1) {
    if (!mask.defined()) {
      lists_[0].resize(static_cast<size_t>(keys));
      std::iota(lists_[0].begin(), lists_[0].end(), int64_t{0});
      return;
    }
    const bool* const at = mask.data<bool>();
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t s = 0; s < keys; ++s)
        if (at[b * mask.strides()[0] + s * mask.strides()[1]]) lists_[static_cast<size_t>(b)].push_back(s);
  }
  std::span<const int64_t> operator()(int64_t b) const {
    return lists_[lists_.size() == 1 ? 0 : static_cast<size_t>(b)];
  }

 private:
  std::vector<std::vector<int64_t>> lists_;
};

/// The rows of one sample and head, `step` apart.
template <class T>
struct Rows {
  T* data;
  int64_t step;
};
template <class T>
Rows<T> rows_of(const Tensor& x, int64_t b, int64_t h) {
  WEFT_ASSERT(x.sizes()[3] == 1 || x.strides()[3] == 1 || x.numel() == 0);
  return {x.data<std::remove_const_t<T>>() + b * x.strides()[0] + h * x.strides()[1], x.strides()[2]};
}

/// Rows at the given places, times scale, filled up with zeros: [at.size(), padded].
template <class T, class C>
void load_rows(const Rows<const T>& from, std::span<const int64_t> at, const Sizes& n, C* to) {
  for (const int64_t row : at) {
    const T* const x = from.data + row * from.step;
#pragma GCC ivdep
    for (int64_t d = 0; d < n.width; ++d) to[d] = load(x[d]);
    for (int64_t d = n.width; d < n.padded; ++d) to[d] = 0;
    to += n.padded;
  }
}

/// `count` rows from `first` on as columns, times scale: [width, tile], zero beyond.
template <class T, class C>
void load_columns(const Rows<const T>& from, int64_t first, int64_t count, C scale, const Sizes& n, C* to) {
  for (int64_t i = 0; i < n.tile; ++i)
    for (int64_t d = 0; d < n.width; ++d)
      to[d * n.tile + i] = i < count ? load(from.data[(first + i) * from.step + d]) * scale : C(0);
}

/// How many of the keys, which rise, query t is the last to see.
int64_t seen(std::span<const int64_t> keys, bool causal, int64_t t, const Sizes& n) {
  if (!causal) return static_cast<int64_t>(keys.size());
  return std::upper_bound(keys.begin(), keys.end(), t + n.look_back) - keys.begin();
}

/// Puts `value` where the queries from `first` on do not see a key; scores [keys, tile].
template <class C>
void hide_later(std::span<const int64_t> keys, int64_t first, C value, const Sizes& n, C* scores) {
  if (keys.back() <= first + n.look_back) return;
  for (const int64_t key : keys) {
    const int64_t blind = std::min(key - n.look_back - first, n.tile);
    for (int64_t i = 0; i < blind; ++i) scores[i] = value;
    scores += n.tile;
  }
}

/// What the probabilities of a tile are multiplied by: 0, or 1 / (1 - p). Key s and query t of head `head` have word
/// s % 4 of block (head · ⌈S / 4⌉ + s / 4) · T + t.
template <class C>
void draw_kept(std::span<const int64_t> keys, int64_t head, int64_t first, double p, Philox state, const Sizes& n,
               C* kept) {
  const auto threshold = static_cast<uint32_t>(p * 0x1p32);
  const auto scale = static_cast<C>(1 / (1 - p));
  uint32_t words[4][kBlocks];
  static_assert(kQueries == kBlocks);
  int64_t drawn = -1;
  for (const int64_t key : keys) {
    if (key / 4 != drawn) {
      drawn = key / 4;
      draw_planes(state.seed,
                  state.offset + static_cast<uint64_t>((head * ((n.keys + 3) / 4) + drawn) * n.queries + first), words);
    }
    const uint32_t* const word = words[key % 4];
    for (int64_t i = 0; i < n.tile; ++i) kept[i] = word[i] >= threshold ? scale : C(0);
    kept += n.tile;
  }
}

/// What a thread of the forward pass works in, one tile of queries after another.
template <class C>
struct Forward {
  const Sizes& n;
  Scratch<C> queries, sums, scores, rows, kept;
  C largest[kQueries], total[kQueries], factor[kQueries];

  explicit Forward(const Sizes& n, bool dropout)
      : n(n),
        queries(n.width * n.tile),
        sums(n.width * n.tile),
        scores(kKeys * n.tile),
        rows(kKeys * n.padded),
        kept(dropout ? kKeys * n.tile : 0) {}

  /// Scores become e^score around the running maximum; what was summed before is scaled to it.
  void exponentials(int64_t count, bool first) {
    C* const s = scores.data();
    C before[kQueries], around[kQueries];
    for (int64_t i = 0; i < n.tile; ++i) before[i] = largest[i];
    for (int64_t j = 0; j < count; ++j)
      for (int64_t i = 0; i < n.tile; ++i) largest[i] = s[j * n.tile + i] > largest[i] ? s[j * n.tile + i] : largest[i];
    for (int64_t i = 0; i < n.tile; ++i) {
      around[i] = largest[i] == -kInfinite<C> ? C(0) : largest[i];
      factor[i] = math::exp(before[i] - around[i]);
      total[i] *= factor[i];
    }
    for (int64_t j = 0; j < count; ++j)
#pragma GCC ivdep
      for (int64_t i = 0; i < n.tile; ++i) {
        const C e = math::exp(s[j * n.tile + i] - around[i]);
        s[j * n.tile + i] = e;
        total[i] += e;
      }
    if (first) return;
    for (int64_t d = 0; d < n.width; ++d)
      for (int64_t i = 0; i < n.tile; ++i) sums.data()[d * n.tile + i] *= factor[i];
  }

  template <class T>
  void run(const Rows<const T>& q, const Rows<const T>& k, const Rows<const T>& v, std::span<const int64_t> keys,
           int64_t head, int64_t first, const AttentionParameters& parameters, Philox state, const Rows<T>& out,
           C* lse) {
    const int64_t count = std::min(n.tile, n.queries - first);
    keys = keys.first(static_cast<size_t>(seen(keys, parameters.causal, first + count - 1, n)));
    load_columns(q, first, count, static_cast<C>(parameters.scale), n, queries.data());
    std::fill_n(largest, n.tile, -kInfinite<C>);
    std::fill_n(total, n.tile, C(0));
    std::fill_n(sums.data(), n.width * n.tile, C(0));
    for (size_t at = 0; at < keys.size(); at += kKeys) {
      const auto some = keys.subspan(at, std::min(keys.size() - at, static_cast<size_t>(kKeys)));
      const auto here = static_cast<int64_t>(some.size());
      load_rows(k, some, n, rows.data());
      multiply<false>(rows.data(), n.padded, 1, here, queries.data(), n.width, n.tile, scores.data());
      if (parameters.causal) hide_later(some, first, -kInfinite<C>, n, scores.data());
      exponentials(here, at == 0);
      if (parameters.dropout > 0) {
        draw_kept(some, head, first, parameters.dropout, state, n, kept.data());
        for (int64_t i = 0; i < here * n.tile; ++i) scores.data()[i] *= kept.data()[i];
      }
      load_rows(v, some, n, rows.data());
      multiply<true>(rows.data(), 1, n.padded, n.width, scores.data(), here, n.tile, sums.data());
    }
    for (int64_t i = 0; i < count; ++i) {
      const bool nothing = total[i] == 0;
      const C scale = nothing ? C(0) : 1 / total[i];
      T* const to = out.data + (first + i) * out.step;
      for (int64_t d = 0; d < n.width; ++d) to[d] = static_cast<T>(sums.data()[d * n.tile + i] * scale);
      lse[first + i] = nothing ? kInfinite<C> : largest[i] + static_cast<C>(std::log(total[i]));
    }
  }
};

/// What a thread of the backward pass works in: the keys of one group, and one head after another.
template <class C>
struct Backward {
  const Sizes& n;
  const int64_t all;                                            // queries in whole tiles
  Scratch<C> q, q_columns, dout, dout_columns, lse, delta, dq;  // of a head
  Scratch<C> k, v, dk, dv;                                      // of a group
  Scratch<C> p, ds, kept;                                       // of a tile

  explicit Backward(const Sizes& n, bool dropout)
      : n(n),
        all(n.tiles * n.tile),
        q(all * n.padded),
        q_columns(all * n.width),
        dout(all * n.padded),
        dout_columns(all * n.width),
        lse(all),
        delta(all),
        dq(all * n.padded),
        k(n.keys * n.padded),
        v(n.keys * n.padded),
        dk(n.keys * n.padded),
        dv(n.keys * n.padded),
        p(kKeys * n.tile),
        ds(kKeys * n.tile),
        kept(dropout ? kKeys * n.tile : 0) {}

  /// Queries and gradients of a head as rows and as columns; delta is Σ dout · out of each query.
  template <class T>
  void load_head(const Rows<const T>& q_rows, const Rows<const T>& dout_rows, const Rows<const T>& out,
                 const C* lse_rows, C scale) {
    std::fill_n(q.data(), all * n.padded, C(0));
    std::fill_n(dout.data(), all * n.padded, C(0));
    for (int64_t t = 0; t < n.queries; ++t) {
      C* const to_q = q.data() + t * n.padded;
      C* const to_dout = dout.data() + t * n.padded;
      const T *const from_q = q_rows.data + t * q_rows.step, *const from_dout = dout_rows.data + t * dout_rows.step,
                     *const from_out = out.data + t * out.step;
#pragma GCC ivdep
      for (int64_t d = 0; d < n.width; ++d) {
        to_q[d] = load(from_q[d]) * scale;
        to_dout[d] = load(from_dout[d]);
      }
      delta.data()[t] = static_cast<C>(row_sum<C>(n.width, [=](int64_t d) { return to_dout[d] * load(from_out[d]); }));
      lse.data()[t] = lse_rows[t];
    }
    std::fill_n(delta.data() + n.queries, all - n.queries, C(0));
    std::fill_n(lse.data() + n.queries, all - n.queries, kInfinite<C>);
    for (int64_t first = 0; first < all; first += n.tile) {
      const int64_t count = std::min(n.tile, n.queries - first);
      load_columns(q_rows, first, count, scale, n, q_columns.data() + first * n.width);
      load_columns(dout_rows, first, count, C(1), n, dout_columns.data() + first * n.width);
    }
    std::fill_n(dq.data(), all * n.padded, C(0));
  }

  /// Adds what one tile of queries and keys gives to all three gradients.
  void add_tile(std::span<const int64_t> keys, int64_t at, int64_t head, int64_t first,
                const AttentionParameters& parameters, Philox state) {
    const auto count = static_cast<int64_t>(keys.size());
    const C* const k_rows = k.data() + at * n.padded;
    multiply<false>(k_rows, n.padded, 1, count, q_columns.data() + first * n.width, n.width, n.tile, p.data());
    multiply<false>(v.data() + at * n.padded, n.padded, 1, count, dout_columns.data() + first * n.width, n.width,
                    n.tile, ds.data());
    if (parameters.causal) hide_later(keys, first, -kInfinite<C>, n, p.data());
    const bool dropout = parameters.dropout > 0;
    if (dropout) draw_kept(keys, head, first, parameters.dropout, state, n, kept.data());
    for (int64_t j = 0; j < count; ++j) {
      C* const pj = p.data() + j * n.tile;
      C* const dj = ds.data() + j * n.tile;
      const C* const kj = kept.data() + j * n.tile;
      const C *const lse_tile = lse.data() + first, *const delta_tile = delta.data() + first;
      if (dropout) {
#pragma GCC ivdep
        for (int64_t i = 0; i < n.tile; ++i) {
          const C e = math::exp(pj[i] - lse_tile[i]);
          dj[i] = e * (dj[i] * kj[i] - delta_tile[i]);
          pj[i] = e * kj[i];
        }
      } else {
#pragma GCC ivdep
        for (int64_t i = 0; i < n.tile; ++i) {
          const C e = math::exp(pj[i] - lse_tile[i]);
          dj[i] = e * (dj[i] - delta_tile[i]);
          pj[i] = e;
        }
      }
    }
    multiply<true>(p.data(), n.tile, 1, count, dout.data() + first * n.padded, n.tile, n.padded,
                   dv.data() + at * n.padded);
    multiply<true>(ds.data(), n.tile, 1, count, q.data() + first * n.padded, n.tile, n.padded,
                   dk.data() + at * n.padded);
    multiply<true>(ds.data(), 1, n.tile, n.tile, k_rows, count, n.padded, dq.data() + first * n.padded);
  }

  void add_head(std::span<const int64_t> keys, int64_t head, const AttentionParameters& parameters, Philox state) {
    for (size_t at = 0; at < keys.size(); at += kKeys) {
      const auto some = keys.subspan(at, std::min(keys.size() - at, static_cast<size_t>(kKeys)));
      int64_t first = 0;
      if (parameters.causal) first = std::max<int64_t>(0, some.front() - n.look_back) / n.tile * n.tile;
      for (; first < all; first += n.tile) add_tile(some, static_cast<int64_t>(at), head, first, parameters, state);
    }
  }

  template <class T>
  void store_queries(const Rows<T>& to, C scale) const {
    for (int64_t t = 0; t < n.queries; ++t)
      for (int64_t d = 0; d < n.width; ++d)
        to.data[t * to.step + d] = static_cast<T>(dq.data()[t * n.padded + d] * scale);
  }
  /// Keys that were left out get zeros.
  template <class T>
  void store_keys(const Scratch<C>& from, std::span<const int64_t> keys, const Rows<T>& to) const {
    size_t next = 0;
    for (int64_t s = 0; s < n.keys; ++s) {
      const bool there = next < keys.size() && keys[next] == s;
      const C* const row = from.data() + static_cast<int64_t>(next) * n.padded;
      for (int64_t d = 0; d < n.width; ++d) to.data[s * to.step + d] = static_cast<T>(there ? row[d] : C(0));
      next += there;
    }
  }
};

}  // namespace

void attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
               const AttentionParameters& parameters, Philox state, Tensor& out, Tensor& lse) {
  WEFT_ASSERT(lse.is_contiguous());
  const Sizes n(q, k);
  if (lse.numel() == 0) return;
  const Allowed allowed(mask, n.batch, n.keys);
  dispatch_floating("attention", q.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    parallel_for(n.batch * n.heads * n.tiles, n.grain, [&](int64_t begin, int64_t end) {
      Forward<C> forward(n, parameters.dropout > 0);
      for (int64_t i = begin; i < end; ++i) {
        // With causality early tiles have little to do and late ones much: they take turns.
        const int64_t head = i / n.tiles, turn = i % n.tiles, tile = turn % 2 ? n.tiles - 1 - turn / 2 : turn / 2;
        const int64_t b = head / n.heads, h = head % n.heads, g = h / (n.heads / n.groups);
        forward.run(rows_of<const T>(q, b, h), rows_of<const T>(k, b, g), rows_of<const T>(v, b, g), allowed(b), head,
                    tile * n.tile, parameters, state, rows_of<T>(out, b, h), lse.data<C>() + head * n.queries);
      }
    });
  });
}

void attention_grad(const Tensor& dout, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                    const Tensor& out, const Tensor& lse, const AttentionParameters& parameters, Philox state,
                    Tensor& dq, Tensor& dk, Tensor& dv) {
  const Sizes n(q, k);
  if (n.batch * n.heads == 0) return;
  const Allowed allowed(mask, n.batch, n.keys);
  dispatch_floating("attention", q.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const auto scale = static_cast<C>(parameters.scale);
    parallel_for(n.batch * n.groups, 1 + n.grain / std::max<int64_t>(1, n.tiles * n.heads / n.groups),
                 [&](int64_t begin, int64_t end) {
                   Backward<C> backward(n, parameters.dropout > 0);
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t b = i / n.groups, g = i % n.groups, sharing = n.heads / n.groups;
                     const auto keys = allowed(b);
                     load_rows(rows_of<const T>(k, b, g), keys, n, backward.k.data());
                     load_rows(rows_of<const T>(v, b, g), keys, n, backward.v.data());
                     std::fill_n(backward.dk.data(), n.keys * n.padded, C(0));
                     std::fill_n(backward.dv.data(), n.keys * n.padded, C(0));
                     for (int64_t h = g * sharing; h < (g + 1) * sharing; ++h) {
                       const int64_t head = b * n.heads + h;
                       backward.load_head(rows_of<const T>(q, b, h), rows_of<const T>(dout, b, h),
                                          rows_of<const T>(out, b, h), lse.data<C>() + head * n.queries, scale);
                       backward.add_head(keys, head, parameters, state);
                       if (dq.defined()) backward.store_queries(rows_of<T>(dq, b, h), scale);
                     }
                     if (dk.defined()) backward.store_keys(backward.dk, keys, rows_of<T>(dk, b, g));
                     if (dv.defined()) backward.store_keys(backward.dv, keys, rows_of<T>(dv, b, g));
                   }
                 });
  });
}

}  // namespace weft::cpu_kernels
