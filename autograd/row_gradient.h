// Gradients of some rows of a table: what an embedding leaves where it is told to, so that neither memory nor time goes
// to the rows that no id named.
#pragma once

#include "tensor/tensor.h"

namespace weft {

struct RowGradient {
  Tensor rows;    ///< i64 [M], rising, each once; on a device the last ones may be the table's number of rows: no row
  Tensor values;  ///< [M, …]: a row's gradient each, 0 where there is no row

  bool defined() const { return rows.defined(); }
};

/// The row gradient of a leaf; undefined where it has none. A leaf has this or `grad()`: where ops give a whole
/// gradient as well, as to an embedding that is also the output layer, the rows are added to it.
RowGradient row_gradient(const Tensor& leaf);
/// Makes `gradient` the row gradient; undefined: none.
void set_row_gradient(const Tensor& leaf, const RowGradient& gradient);

/// The rows of a [N, width] gradient of `ids` [N] (i64 or i32), those of the same id added up in the order of their
/// positions; ids that are `padding_idx` are left out. `table_rows`: of the table.
RowGradient rows_of(const Tensor& gradient, const Tensor& ids, int64_t table_rows, int64_t padding_idx = -1);

}  // namespace weft
