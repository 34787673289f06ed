// Embedding: value and gradient.
#include "autograd/ops/embedding.h"

#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {

Tensor embedding(const Tensor& weight, const Tensor& ids, int64_t padding_idx, bool sparse) {
  WEFT_CHECK(weight.dim() == 2, "embedding", "weight wants [vocabulary, width], got {}", str(weight.sizes()));
  WEFT_CHECK(is_floating(weight.dtype()), "embedding", "weight wants a floating dtype, got {}", name(weight.dtype()));
  WEFT_CHECK(ids.dtype() == i64 || ids.dtype() == i32, "embedding", "the ids must be i64 or i32, got {}",
             name(ids.dtype()));
  WEFT_CHECK(weight.device() == ids.device(), "embedding", "weight is on {}, the ids on {}", name(weight.device()),
             name(ids.device()));
  const int64_t rows = weight.sizes()[0], width = weight.sizes()[1];
  WEFT_CHECK(padding_idx >= -1 && padding_idx < rows, "embedding", "padding_idx {} is not a row of weight {}",
             padding_idx, str(weight.sizes()));
  kernels::check_index(ids, rows, "embedding", "a vocabulary");
  const Tensor flat = raw::reshape(ids, {ids.numel()});
  const Tensor index = raw::contiguous(flat);
  Shape sizes = ids.sizes();
  sizes.push_back(width);
  Tensor y = empty(sizes, {weight.dtype(), weight.device()});
  kernels::embedding(weight, index, y);
  Node* const node = node_of(weight);
  const bool by_rows = sparse && node && node->leaf && node->hooks.empty() && weight.is_contiguous();
  return record("embedding", {weight}, y,
                [leaf = by_rows ? Ref<Node>(node) : Ref<Node>(), rows, width, padding_idx,
                 index = SavedTensor(index)](const Tensor& dy) -> Grads {
                  const Tensor flat_dy = raw::reshape(dy, {index().numel(), width});
                  if (leaf) {
                    static_cast<LeafNode&>(*leaf).add_rows(rows_of(flat_dy, index(), rows, padding_idx));
                    return {Tensor()};
                  }
                  Tensor dweight = empty({rows, width}, {dy.dtype(), dy.device()});
                  kernels::embedding_grad(flat_dy, index(), padding_idx, dweight);
                  return {dweight};
                });
}

}  // namespace weft
