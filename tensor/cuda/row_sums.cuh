// Rows added up by index without atomics on floats: positions are sorted by row (stably, so those of a row rise), then
// every run of equal rows is added up in double. A thread adds a short piece of the sorted list; what reaches over the
// ends of its piece becomes a list of its own, which is added up in the same way. So one row that takes all positions
// costs no more than many rows, and the sums are the same on every run and device.
#pragma once

#include "tensor/cuda/sort.cuh"
#include "tensor/functors.h"

namespace weft::WEFT_GPU {

/// What sums of T are taken in: double, or whole numbers that wrap.
template <class T>
struct total {
  using type = std::conditional_t<FloatingElement<T>, double, functors::modular_t<T>>;
};
template <>
struct total<bool> {
  using type = uint32_t;
};
template <class T>
using total_t = typename total<T>::type;

template <class T>
__device__ __forceinline__ total_t<T> to_total(T value) {
  return static_cast<total_t<T>>(static_cast<compute_t<T>>(value));
}
template <class T>
__device__ __forceinline__ T from_total(total_t<T> sum) {
  return static_cast<T>(static_cast<compute_t<T>>(sum));
}

/// Sorted rows with their positions (null: 0, 1, 2, …); entries of row `none` count nothing.
template <class Key, class Position>
struct RowList {
  const Key* rows;
  const Position* positions;
  int64_t n;
  Key none;
};

/// source [outer, positions, inner] and out [outer, rows, inner], by their strides.
struct RowStrides {
  int64_t outer, inner;
  int64_t source_outer, source_row, out_outer;
};

/// Positions of one thread, in the list that was sorted and in those that come of it.
inline constexpr int kRunTile = 16, kOpenTile = 64;

/// Adds the runs that lie within one tile to out. A run that reaches over a tile's begin or end leaves what the tile
/// has of it in open [2 · tiles, outer · inner], with its row in open_rows; one that reaches over both fills both
/// places, so that its entries stay neighbours.
template <int V, int kTile, class From, class T, class Key, class Position>
__global__ void __launch_bounds__(kBlock)
    add_runs_kernel(RowList<Key, Position> list, RowStrides at, const From* source, T* out, Key* open_rows,
                    total_t<T>* open) {
  using Total = total_t<T>;
  const int64_t width = at.outer * at.inner, columns = width / V, tiles = ceil_div(list.n, kTile);
  for (int64_t id = grid_index(); id < tiles * columns; id += grid_size()) {
    const int64_t tile = id / columns, column = (id - tile * columns) * V;
    const int64_t o = column / at.inner, c = column - o * at.inner;
    const From* const from = source + o * at.source_outer + c;
    T* const to = out + o * at.out_outer + c;
    const int64_t begin = tile * kTile, end = begin + kTile < list.n ? begin + kTile : list.n;
    Key row = list.rows[begin], head = list.none, tail = list.none;
    bool goes_on = begin > 0 && list.rows[begin - 1] == row;
    Total sum[V] = {};
    for (int64_t i = begin; i < end; ++i) {
      if (row != list.none) {
        const int64_t position = list.positions ? static_cast<int64_t>(list.positions[i]) : i;
        const auto values = *reinterpret_cast<const Pack<From, V>*>(from + position * at.source_row);
        WEFT_UNROLL
        for (int k = 0; k < V; ++k) sum[k] = static_cast<Total>(sum[k] + to_total(values.v[k]));
      }
      const Key next = i + 1 < list.n ? list.rows[i + 1] : list.none;
      const bool same = i + 1 < list.n && next == row;
      if (same && i + 1 < end) continue;
      if (row != list.none) {
        T* const y = to + static_cast<int64_t>(row) * at.inner;
        Total* const place = open + (2 * tile + (goes_on ? 0 : 1)) * width + column;
        WEFT_UNROLL
        for (int k = 0; k < V; ++k) {
          if (goes_on || same)
            place[k] = sum[k];
          else
            y[k] = from_total<T>(static_cast<Total>(to_total(y[k]) + sum[k]));
          if (goes_on && same) place[width + k] = 0;
          sum[k] = 0;
        }
        if (goes_on) head = row;
        if (same) tail = row;
      }
      row = next;
      goes_on = false;
    }
    if (open_rows && column == 0) {
      open_rows[2 * tile] = head;
      open_rows[2 * tile + 1] = tail;
    }
  }
}

template <int V, int kTile, class From, class T, class Key, class Position>
void launch_add_runs(const RowList<Key, Position>& list, const RowStrides& at, const From* source, T* out,
                     Key* open_rows, total_t<T>* open) {
  const int64_t threads = ceil_div(list.n, kTile) * (at.outer * at.inner / V);
  launch(blocks_for(threads), kBlock, 0, add_runs_kernel<V, kTile, From, T, Key, Position>, list, at, source, out,
         open_rows, open);
}

/// out[o, row, c] += Σ source[o, position, c] over the list's positions of the row; both dense.
template <class T, class Key, class Position>
void add_sorted_rows(RowList<Key, Position> list, int64_t rows, int64_t outer, int64_t inner, const T* source, T* out,
                     Device device) {
  using Total = total_t<T>;
  constexpr int V = FloatingElement<T> ? static_cast<int>(16 / sizeof(T)) : 1;
  const int64_t width = outer * inner;
  const bool packs = inner % V == 0 && packs_fit<V>(source, out);
  RowStrides at{outer, inner, list.n * inner, inner, rows * inner};
  int64_t tiles = ceil_div(list.n, kRunTile);
  Room<Key> open_rows;
  Room<Total> open;
  const auto make_room = [&] {
    open_rows = tiles > 1 ? Room<Key>(2 * tiles, device) : Room<Key>();
    open = tiles > 1 ? Room<Total>(2 * tiles * width, device) : Room<Total>();
  };
  make_room();
  if (packs)
    launch_add_runs<V, kRunTile>(list, at, source, out, open_rows.data(), open.data());
  else
    launch_add_runs<1, kRunTile>(list, at, source, out, open_rows.data(), open.data());
  at.source_outer = inner;
  at.source_row = width;
  while (tiles > 1) {
    const Room<Key> from_rows = open_rows;
    const Room<Total> from = open;
    list = {from_rows.data(), nullptr, 2 * tiles, list.none};
    tiles = ceil_div(list.n, kOpenTile);
    make_room();
    launch_add_runs<1, kOpenTile>(list, at, from.data(), out, open_rows.data(), open.data());
  }
}

}  // namespace weft::WEFT_GPU
