// What stems share of adding by index.
#pragma once

#include "tensor/tensor.h"

namespace weft::WEFT_GPU {

/// out[.., index[i], ..] += source[.., i, ..] along `dim`, for all i but those whose index is `skip` or no row of out;
/// in the order of rising i. `op` is named in errors.
void add_rows(const char* op, const Tensor& source, int64_t dim, const Tensor& index, int64_t skip, Tensor& out);

/// The rows that `index` [n] names but `skip`, and below `table_rows`, as embedding_grad_rows has them; source and
/// values are dense.
void add_named_rows(const Tensor& source, const Tensor& index, int64_t table_rows, int64_t skip, Tensor& rows,
                    Tensor& values);

}  // namespace weft::WEFT_GPU
