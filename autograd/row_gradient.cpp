// Row gradients are kept by the leaf's node.
#include "autograd/row_gradient.h"

#include <algorithm>

#include "autograd/node.h"
#include "autograd/ops/index.h"
#include "tensor/error.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

LeafNode* leaf_of(const Tensor& x) {
  Node* const node = node_of(x);
  return node && node->leaf ? static_cast<LeafNode*>(node) : nullptr;
}

}  // namespace

RowGradient row_gradient(const Tensor& leaf) {
  const LeafNode* const node = leaf_of(leaf);
  return node ? node->rows : RowGradient();
}

void set_row_gradient(const Tensor& leaf, const RowGradient& gradient) {
  LeafNode* const node = leaf_of(leaf);
  WEFT_CHECK(node, "set_row_gradient", "the tensor is not a leaf that requires a gradient");
  node->rows = gradient;
}

RowGradient rows_of(const Tensor& gradient, const Tensor& ids, int64_t table_rows, int64_t padding_idx) {
  const int64_t most = std::min(ids.numel(), table_rows), width = gradient.size(1);
  const Device device = gradient.device();
  RowGradient r{empty({most}, {i64, device}), empty({most, width}, {gradient.dtype(), device})};
  kernels::embedding_grad_rows(gradient, raw::contiguous(ids), table_rows, padding_idx, r.rows, r.values);
  if (device == cpu) {  // where nothing has to wait for the count
    const int64_t* const rows = r.rows.data<int64_t>();
    const int64_t count = std::lower_bound(rows, rows + most, table_rows) - rows;
    r = {raw::narrow(r.rows, 0, 0, count), raw::narrow(r.values, 0, 0, count)};
  }
  return r;
}

void LeafNode::add_rows(const RowGradient& more) {
  rows_came = true;
  if (!rows.defined()) {
    rows = more;
    return;
  }
  rows = rows_of(cat({rows.values, more.values}, 0), cat({rows.rows, more.rows}, 0), outputs[0].sizes[0]);
}

void LeafNode::merge_rows() {
  if (!rows.defined() || !grad.defined()) return;
  kernels::index_add(rows.values, 0, rows.rows, grad);
  grad.storage()->bump_version();
  rows = {};
}

}  // namespace weft
