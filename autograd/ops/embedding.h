// Embedding: rows of a table by id.
#pragma once

#include "tensor/tensor.h"

namespace weft {

/// weight [V, D], ids [..] (i64 or i32) → [.., D]. An id outside of [0, V) throws with its position. The row
/// `padding_idx` gets a gradient of 0; -1: no such row. The gradient adds rows in order of position, so it is the same
/// every time. With `sparse`, a contiguous weight that is a leaf gets a row gradient (autograd/row_gradient.h) in place
/// of a whole one, unless a hook wants to see it.
Tensor embedding(const Tensor& weight, const Tensor& ids, int64_t padding_idx = -1, bool sparse = false);

}  // namespace weft
