// The k first of each line in rising or falling order. NaN counts as larger than every number, equal values keep their
// order. Values become whole numbers that rise in the wanted order; few are picked one after the other, many are
// sorted.
#include <limits>

#include "tensor/cuda/block.cuh"
#include "tensor/cuda/places.cuh"
#include "tensor/cuda/sort.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

template <class T>
using key_t = std::conditional_t<sizeof(compute_t<T>) == 8, uint64_t, uint32_t>;

/// A whole number that rises with the value: all NaN are one, above infinity, and both zeros are one.
template <class T>
__device__ __forceinline__ key_t<T> rising_key(T value) {
  using C = compute_t<T>;
  using Key = key_t<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (FloatingElement<T>) {
    const C v = static_cast<C>(value);
    if (v != v) return ~Key{0};
    const Key bits = std::bit_cast<Key>(v == C(0) ? C(0) : v);
    return bits & kSign ? static_cast<Key>(~bits) : bits | kSign;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(value) ^ kSign;
  } else {
    return value;
  }
}
/// Low bits of a key that are not the same for all values.
template <class T>
constexpr int key_bits() {
  return sizeof(T) == 1 ? 8 : 8 * sizeof(key_t<T>);
}

/// The number that is lower for what comes first.
template <class T>
__device__ __forceinline__ key_t<T> key_of(T value, bool largest) {
  const key_t<T> key = rising_key(value);
  return largest ? static_cast<key_t<T>>(~key) : key;
}

struct Min {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};

template <int kThreads, class T>
__device__ T least(T value) {
  return group_reduce<kThreads>(value, Min{}, std::numeric_limits<T>::max());
}

/// Lines by the first element of values, x and indices each; along a line they take steps.
struct Lines {
  Places<3> places;
  int64_t n, k;
  int64_t value_step, x_step, index_step;
};

/// kThreads a line. The j-th is the first of those that come after the one before it.
template <int kThreads, class T>
__global__ void __launch_bounds__(kBlock)
    select_kernel(Lines lines, bool largest, const T* x, T* values, int64_t* indices) {
  using Key = key_t<T>;
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const uint32_t step = gridDim.x * (kBlock / kThreads);
  for (uint32_t i = (blockIdx.x * kBlock + threadIdx.x) / kThreads; i < lines.places.layout.chunks; i += step) {
    int64_t at[3];
    lines.places.find(i, at);
    const T* const line = x + at[1];
    Key last_key = 0;
    int64_t last_index = -1;
    for (int64_t j = 0; j < lines.k; ++j) {
      Key key = std::numeric_limits<Key>::max();
      int64_t index = kNone;
      for (int64_t p = thread; p < lines.n; p += kThreads) {
        const Key here = key_of(line[p * lines.x_step], largest);
        const bool after = here > last_key || (here == last_key && p > last_index);
        if (after && (here < key || index == kNone)) {
          key = here;
          index = p;
        }
      }
      last_key = least<kThreads>(key);
      last_index = least<kThreads>(key == last_key ? index : kNone);
      if (thread > 0) continue;
      values[at[0] + j * lines.value_step] = line[last_index * lines.x_step];
      indices[at[2] + j * lines.index_step] = last_index;
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock) keys_kernel(const T* x, int64_t n, bool largest, key_t<T>* keys) {
  for (int64_t i = grid_index(); i < n; i += grid_size()) keys[i] = key_of(x[i], largest);
}

template <class Position>
__global__ void __launch_bounds__(kBlock)
    line_of_kernel(const Position* positions, int64_t n, int64_t length, Position* lines) {
  for (int64_t i = grid_index(); i < n; i += grid_size()) lines[i] = positions[i] / static_cast<Position>(length);
}

// Operands: values, indices, the place in the sorted lines.
template <class T, class Position>
struct WriteSorted {
  T* values;
  int64_t* indices;
  const T* x;
  const Position* positions;
  int64_t length;

  __device__ void operator()(const int64_t* at) const {
    const auto position = static_cast<int64_t>(positions[at[2]]);
    values[at[0]] = x[position];
    indices[at[1]] = position % length;
  }
};

Tensor moved_last(const Tensor& x, int64_t dim) {
  Shape order;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != dim) order.push_back(d);
  order.push_back(dim);
  return raw::permute(x, order);
}

/// All lines at once: by value, then, stably, by line.
template <class T, class Position>
void sort_lines(const Tensor& x, int64_t dim, bool largest, Tensor& values, Tensor& indices) {
  const Device device = x.device();
  const Tensor dense = raw::contiguous(moved_last(x, dim));
  const int64_t n = dense.numel(), length = x.sizes()[dim], count = n / length;
  Room<key_t<T>> keys(n, device);
  launch(blocks_for(n), kBlock, 0, keys_kernel<T>, dense.data<T>(), n, largest, keys.data());
  Room<Position> positions = sort_by_key<key_t<T>, Position>({std::move(keys), {}}, n, key_bits<T>()).positions;
  if (count > 1) {
    Room<Position> lines(n, device);
    launch(blocks_for(n), kBlock, 0, line_of_kernel<Position>, positions.data(), n, length, lines.data());
    positions = sort_by_key<Position, Position>({std::move(lines), positions}, n,
                                                static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1))))
                    .positions;
  }
  const Tensor value = moved_last(values, dim), index = moved_last(indices, dim),
               place = raw::narrow(dense, dense.dim() - 1, 0, values.sizes()[dim]);
  each_place<3>(
      WriteSorted<T, Position>{value.data<T>(), index.data<int64_t>(), dense.data<T>(), positions.data(), length},
      LoopNest<3>({&value, &index, &place}));
}

/// Up to so many of a line are picked, and lines up to this length.
constexpr int64_t kFewPicked = 16, kShortLine = 128;

}  // namespace

void topk(const Tensor& x, int64_t dim, bool largest, Tensor& values, Tensor& indices) {
  if (values.numel() == 0) return;
  const int64_t n = x.sizes()[dim], k = values.sizes()[dim];
  dispatch(x.dtype(), [&]<class T>() {
    if (k > kFewPicked && n > kShortLine) {
      if (x.numel() < int64_t{1} << 32) return sort_lines<T, uint32_t>(x, dim, largest, values, indices);
      return sort_lines<T, uint64_t>(x, dim, largest, values, indices);
    }
    const Tensor value = raw::narrow(values, dim, 0, 1), line = raw::narrow(x, dim, 0, 1),
                 index = raw::narrow(indices, dim, 0, 1);
    each_piece<3>(LoopNest<3>({&value, &line, &index}), [&](const Places<3>& places, uint32_t count) {
      const Lines lines{places, n, k, values.strides()[dim], x.strides()[dim], indices.strides()[dim]};
      if (n <= 8 * kWarp)
        launch(blocks_for(count, kBlock / kWarp), kBlock, 0, select_kernel<kWarp, T>, lines, largest, x.data<T>(),
               values.data<T>(), indices.data<int64_t>());
      else
        launch(blocks_for(count, 1), kBlock, 0, select_kernel<kBlock, T>, lines, largest, x.data<T>(), values.data<T>(),
               indices.data<int64_t>());
    });
  });
}

}  // namespace weft::WEFT_GPU
