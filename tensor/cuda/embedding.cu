// Rows of a table by index, and the sums of their gradients: gather and index_add of whole rows.
#include "tensor/cuda/gpu.cuh"
#include "tensor/cuda/index.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {

void embedding(const Tensor& weight, const Tensor& ids, Tensor& out) {
  WEFT_ASSERT(ids.is_contiguous() && out.is_contiguous());
  const Shape sizes{ids.numel(), weight.sizes()[1]};
  Tensor rows = raw::view(out, sizes, {sizes[1], 1}, out.offset());
  gather(weight, 0, raw::view(ids, sizes, {1, 0}, ids.offset()), rows);
}

void embedding_grad(const Tensor& dy, const Tensor& ids, int64_t padding_idx, Tensor& dweight) {
  WEFT_ASSERT(ids.is_contiguous() && dweight.is_contiguous());
  fill(dweight, 0);
  add_rows("embedding", dy, 0, raw::view(ids, {ids.numel()}, {1}, ids.offset()), padding_idx, dweight);
}

void embedding_grad_rows(const Tensor& dy, const Tensor& ids, int64_t table_rows, int64_t padding_idx, Tensor& rows,
                         Tensor& values) {
  add_named_rows(dy, ids, table_rows, padding_idx, rows, values);
}

namespace {

template <class Bits>
__global__ void __launch_bounds__(kBlock) put_rows_kernel(const Bits* values, const int64_t* rows, int64_t count,
                                                          int64_t width, int64_t out_rows, Bits* out) {
  for (int64_t i = grid_index(); i < count * width; i += grid_size()) {
    const int64_t k = i / width, row = rows[k];
    if (row >= 0 && row < out_rows) out[row * width + i - k * width] = values[i];
  }
}

template <class Bits>
void put_bits(const Tensor& values, const Tensor& rows, Tensor& out) {
  launch(blocks_for(values.numel()), kBlock, 0, put_rows_kernel<Bits>, static_cast<const Bits*>(values.raw_data()),
         rows.data<int64_t>(), rows.numel(), out.sizes()[1], out.sizes()[0], static_cast<Bits*>(out.raw_data()));
}

}  // namespace

void put_rows(const Tensor& values, const Tensor& rows, Tensor& out) {
  WEFT_ASSERT(values.is_contiguous() && rows.is_contiguous() && out.is_contiguous() && values.dtype() == out.dtype());
  if (values.numel() == 0) return;
  switch (size_of(out.dtype())) {
    case 8:
      return put_bits<uint64_t>(values, rows, out);
    case 4:
      return put_bits<uint32_t>(values, rows, out);
    default:
      return put_bits<uint16_t>(values, rows, out);
  }
}

}  // namespace weft::WEFT_GPU
