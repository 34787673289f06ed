// Reading and adding by index along one dimension, and masks. An index that is out of range has been reported by
// check_index; what comes after it reads zeros for it, or adds nothing.
#include "tensor/cuda/fault.cuh"
#include "tensor/cuda/index.h"
#include "tensor/cuda/places.cuh"
#include "tensor/cuda/row_sums.cuh"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

template <class I>
__global__ void __launch_bounds__(kBlock) check_kernel(IndexCheck check, int64_t n, const I* index) {
  for (int64_t i = grid_index(); i < n; i += grid_size()) check(index[i], i);
}

/// A view that stands still along `dim`, with the sizes of `sizes`.
Tensor still_along(const Tensor& x, int64_t dim, const Shape& sizes) {
  Shape strides = x.strides();
  strides[dim] = 0;
  return raw::view(x, sizes, strides, x.offset());
}

/// Not a tensor to read: its offsets are the positions along `dim`.
Tensor counting_along(const Tensor& x, int64_t dim) {
  Shape strides = Shape::filled(x.dim(), 0);
  strides[dim] = 1;
  return raw::view(x, x.sizes(), strides, 0);
}

// Operands: out, index, x at the first index. V elements of one index, or one element.
template <int V, class Bits, class I>
struct Gather {
  Bits* out;
  const I* index;
  const Bits* x;
  int64_t size, step;

  __device__ void operator()(const int64_t* at) const {
    const int64_t j = index[at[1]];
    Pack<Bits, V> values{};
    if (j >= 0 && j < size) values = *reinterpret_cast<const Pack<Bits, V>*>(x + at[2] + j * step);
    *reinterpret_cast<Pack<Bits, V>*>(out + at[0]) = values;
  }
};

/// Elements of one size, whatever they mean.
template <class Bits, class I>
void gather_bits(const Tensor& x, int64_t dim, const Tensor& index, Tensor& out) {
  const Tensor base = still_along(x, dim, out.sizes());
  const LoopNest<3> nest({&out, &index, &base});
  const int64_t size = x.sizes()[dim], step = x.strides()[dim];
  auto* const to = static_cast<Bits*>(out.raw_data());
  const auto* const from = static_cast<const Bits*>(base.raw_data());
  const I* const where = index.data<I>();
  constexpr int V = static_cast<int>(16 / sizeof(Bits));
  // One index for whole rows: 128 bits at once.
  if (nest.strides[0][0] == 1 && nest.strides[1][0] == 0 && nest.strides[2][0] == 1 && step % V == 0 &&
      each_chunk<V, 3>(Gather<V, Bits, I>{to, where, from, size, step}, nest, {to, where, from},
                       {sizeof(Bits), sizeof(I), sizeof(Bits)}))
    return;
  each_place<3>(Gather<1, Bits, I>{to, where, from, size, step}, nest);
}

// Operands: source, index, out at the first index, position along the dimension. The first of equal indices of a line
// adds up the values of all of them.
template <class T, class I>
struct AddFew {
  const T* source;
  const I* index;
  T* out;
  int64_t count, size, skip;
  int64_t source_step, index_step, out_step;

  __device__ void operator()(const int64_t* at) const {
    const int64_t k = at[3], j = index[at[1]];
    if (j < 0 || j >= size || j == skip) return;
    const I* const line = index + at[1] - k * index_step;
    for (int64_t i = 0; i < k; ++i)
      if (line[i * index_step] == j) return;
    T& y = out[at[2] + j * out_step];
    total_t<T> sum = to_total(y);
    for (int64_t i = k; i < count; ++i)
      if (line[i * index_step] == j)
        sum = static_cast<total_t<T>>(sum + to_total(source[at[0] + (i - k) * source_step]));
    y = from_total<T>(sum);
  }
};

/// Up to this many indices along the dimension are compared with each other; more are sorted.
constexpr int64_t kFew = 32;

/// out += source at the indices but `skip`, for at most kFew of them along the dimension.
void add_few(const char* op, const Tensor& source, int64_t dim, const Tensor& index, int64_t skip, Tensor& out) {
  const Tensor base = still_along(out, dim, source.sizes()), count = counting_along(source, dim);
  const LoopNest<4> nest({&source, &index, &base, &count});
  dispatch_index(op, index.dtype(), [&]<class I>() {
    dispatch(out.dtype(), [&]<class T>() {
      each_place<4>(
          AddFew<T, I>{source.data<T>(), index.data<I>(), base.data<T>(), source.sizes()[dim], out.sizes()[dim], skip,
                       source.strides()[dim], index.strides()[dim], out.strides()[dim]},
          nest);
    });
  });
}

/// The row of each position, `none` for those that count nothing.
template <class I, class Key>
__global__ void __launch_bounds__(kBlock) rows_kernel(const I* index, int64_t n, int64_t skip, Key none, Key* rows) {
  for (int64_t i = grid_index(); i < n; i += grid_size()) {
    const int64_t row = index[i];
    rows[i] = row >= 0 && row < static_cast<int64_t>(none) && row != skip ? static_cast<Key>(row) : none;
  }
}

// Operands: source (dense), index, out at the first index (dense). The row of an element is its place in out.
template <class I, class Key>
struct PlaceInOut {
  const I* index;
  int64_t size, out_step;
  Key none;
  Key* rows;

  __device__ void operator()(const int64_t* at) const {
    const int64_t j = index[at[1]];
    rows[at[0]] = j >= 0 && j < size ? static_cast<Key>(at[2] + j * out_step) : none;
  }
};

/// use.operator()<Key>() with 32-bit numbers for rows and positions where those reach.
template <class Use>
void with_key(int64_t rows, int64_t positions, const Use& use) {
  if (std::max(rows, positions) < int64_t{1} << 32)
    use.template operator()<uint32_t>();
  else
    use.template operator()<uint64_t>();
}

/// Sorts `rows` and adds: source [outer, n, inner] into out [outer, `none` rows, inner].
template <class Key>
void sort_and_add(const Room<Key>& rows, int64_t n, Key none, int64_t outer, int64_t inner, const Tensor& source,
                  Tensor& out) {
  const Sorted<Key, Key> sorted = sort_by_key<Key, Key>({rows, {}}, n, static_cast<int>(std::bit_width(none)));
  const RowList<Key, Key> list{sorted.keys.data(), sorted.positions.data(), n, none};
  dispatch(out.dtype(), [&]<class T>() {
    add_sorted_rows(list, static_cast<int64_t>(none), outer, inner, source.data<T>(), out.data<T>(), out.device());
  });
}

}  // namespace

void check_index(const Tensor& index, int64_t size, const char* op, const char* what) {
  if (index.numel() == 0) return;
  const Tensor dense = raw::contiguous(index);
  dispatch_index(op, index.dtype(), [&]<class I>() {
    launch(blocks_for(dense.numel()), kBlock, 0, check_kernel<I>, index_check(op, "index", what, size), dense.numel(),
           dense.data<I>());
  });
}

void gather(const Tensor& x, int64_t dim, const Tensor& index, Tensor& out) {
  if (out.numel() == 0) return;
  dispatch_index("gather", index.dtype(), [&]<class I>() {
    switch (size_of(x.dtype())) {
      case 8:
        return gather_bits<uint64_t, I>(x, dim, index, out);
      case 4:
        return gather_bits<uint32_t, I>(x, dim, index, out);
      case 2:
        return gather_bits<uint16_t, I>(x, dim, index, out);
      default:
        return gather_bits<uint8_t, I>(x, dim, index, out);
    }
  });
}

void scatter_add(const Tensor& source, int64_t dim, const Tensor& index, Tensor& out) {
  if (source.numel() == 0) return;
  if (source.sizes()[dim] <= kFew) return add_few("scatter_add", source, dim, index, -1, out);
  const Tensor from = raw::contiguous(source);
  Tensor to = raw::contiguous(out);
  const Tensor base = still_along(to, dim, from.sizes());
  const LoopNest<3> nest({&from, &index, &base});
  const int64_t n = from.numel();
  with_key(to.numel(), n, [&]<class Key>() {
    const Room<Key> rows(n, out.device());
    const auto none = static_cast<Key>(to.numel());
    dispatch_index("scatter_add", index.dtype(), [&]<class I>() {
      each_place<3>(PlaceInOut<I, Key>{index.data<I>(), to.sizes()[dim], to.strides()[dim], none, rows.data()}, nest);
    });
    sort_and_add<Key>(rows, n, none, 1, 1, from, to);
  });
  if (!out.is_contiguous()) copy(to, out);
}

void add_rows(const char* op, const Tensor& source, int64_t dim, const Tensor& index, int64_t skip, Tensor& out) {
  if (source.numel() == 0) return;
  const int64_t n = index.numel();
  if (n <= kFew) {
    Shape strides = Shape::filled(source.dim(), 0);
    strides[dim] = index.strides()[0];
    return add_few(op, source, dim, raw::view(index, source.sizes(), strides, index.offset()), skip, out);
  }
  const Tensor from = raw::contiguous(source), where = raw::contiguous(index);
  Tensor to = raw::contiguous(out);
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < out.dim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : out.sizes()[d];
  with_key(out.sizes()[dim], n, [&]<class Key>() {
    const Room<Key> rows(n, out.device());
    const auto none = static_cast<Key>(out.sizes()[dim]);
    dispatch_index(op, where.dtype(), [&]<class I>() {
      launch(blocks_for(n), kBlock, 0, rows_kernel<I, Key>, where.data<I>(), n, skip, none, rows.data());
    });
    sort_and_add<Key>(rows, n, none, outer, inner, from, to);
  });
  if (!out.is_contiguous()) copy(to, out);
}

namespace {

/// first[i]: whether a run of equal rows begins at i.
template <class Key>
__global__ void __launch_bounds__(kBlock) first_of_row_kernel(const Key* rows, int64_t n, Key none, int64_t* first) {
  for (int64_t i = grid_index(); i < n; i += grid_size())
    first[i] = rows[i] != none && (i == 0 || rows[i - 1] != rows[i]);
}

/// The number of each position's row among those that are named, from the count of them up to it.
template <class Key>
__global__ void __launch_bounds__(kBlock) number_rows_kernel(const Key* rows, const int64_t* count, int64_t n, Key none,
                                                             Key beyond, Key* numbers, int64_t* named) {
  for (int64_t i = grid_index(); i < n; i += grid_size()) {
    const Key row = rows[i];
    numbers[i] = row == none ? beyond : static_cast<Key>(count[i] - 1);
    if (row != none && (i == 0 || rows[i - 1] != row)) named[count[i] - 1] = static_cast<int64_t>(row);
  }
}

}  // namespace

void add_named_rows(const Tensor& source, const Tensor& index, int64_t table_rows, int64_t skip, Tensor& rows,
                    Tensor& values) {
  WEFT_ASSERT(rows.is_contiguous() && values.is_contiguous());
  fill(rows, table_rows);
  fill(values, 0);
  const int64_t n = index.numel();
  if (n == 0 || values.numel() == 0) return;
  const Tensor from = raw::contiguous(source), where = raw::contiguous(index);
  const Device device = values.device();
  with_key(table_rows, n, [&]<class Key>() {
    const auto none = static_cast<Key>(table_rows), beyond = static_cast<Key>(rows.numel());
    const Room<Key> unsorted(n, device), numbers(n, device);
    dispatch_index("embedding", where.dtype(), [&]<class I>() {
      launch(blocks_for(n), kBlock, 0, rows_kernel<I, Key>, where.data<I>(), n, skip, none, unsorted.data());
    });
    const Sorted<Key, Key> sorted = sort_by_key<Key, Key>({unsorted, {}}, n, static_cast<int>(std::bit_width(none)));
    const Tensor first = empty({n}, {DType::i64, device});
    Tensor count = empty({n}, {DType::i64, device});
    launch(blocks_for(n), kBlock, 0, first_of_row_kernel<Key>, sorted.keys.data(), n, none, first.data<int64_t>());
    cumsum(first, 0, false, count);
    launch(blocks_for(n), kBlock, 0, number_rows_kernel<Key>, sorted.keys.data(), count.data<int64_t>(), n, none,
           beyond, numbers.data(), rows.data<int64_t>());
    const RowList<Key, Key> list{numbers.data(), sorted.positions.data(), n, beyond};
    dispatch_floating("embedding", values.dtype(), [&]<class T>() {
      add_sorted_rows(list, rows.numel(), 1, values.sizes()[1], from.data<T>(), values.data<T>(), device);
    });
  });
}

void index_add(const Tensor& source, int64_t dim, const Tensor& index, Tensor& out) {
  add_rows("index_add", source, dim, index, -1, out);
}

namespace {

template <class T>
struct FillCovered {
  compute_t<T> value;
  __device__ compute_t<T> operator()(compute_t<T> x, bool covered) const { return covered ? value : x; }
};

}  // namespace

void masked_fill(const Tensor& x, const Tensor& mask, Scalar value, Tensor& out) {
  dispatch(out.dtype(),
           [&]<class T>() { map<T, T, bool>(FillCovered<T>{static_cast<compute_t<T>>(value.to<T>())}, out, x, mask); });
}

}  // namespace weft::WEFT_GPU
