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

}  // namespace weft::WEFT_GPU
