// Rows of a table by index, and the sums of their gradients.
#include <cstring>
#include <utility>

#include "tensor/cpu/row_sums.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {

void embedding(const Tensor& weight, const Tensor& ids, Tensor& out) {
  WEFT_ASSERT(ids.is_contiguous() && out.is_contiguous());
  const int64_t width = weight.sizes()[1];
  if (width == 0) return;
  const Tensor table = weight.strides()[1] == 1 || width == 1 ? weight : raw::contiguous(weight);
  const int64_t row_bytes = width * size_of(weight.dtype()), step = table.strides()[0] * size_of(weight.dtype());
  const auto* from = static_cast<const char*>(table.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  dispatch_index("embedding", ids.dtype(), [&]<class I>() {
    const I* index = ids.data<I>();
    parallel_for(ids.numel(), std::max<int64_t>(1, kGrain / width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        std::memcpy(to + i * row_bytes, from + index[i] * step, static_cast<size_t>(row_bytes));
    });
  });
}

void embedding_grad(const Tensor& dy, const Tensor& ids, int64_t padding_idx, Tensor& dweight) {
  WEFT_ASSERT(ids.is_contiguous() && dweight.is_contiguous());
  const Tensor rows = raw::contiguous(dy);
  fill(dweight, 0);
  dispatch_index("embedding", ids.dtype(), [&]<class I>() {
    const RowRuns lists(ids.data<I>(), ids.numel(), dweight.sizes()[0], padding_idx);
    dispatch_floating("embedding", dy.dtype(),
                      [&]<class T>() { add_rows(lists, rows.data<T>(), dweight.data<T>(), dweight.sizes()[1]); });
  });
}

void embedding_grad_rows(const Tensor& dy, const Tensor& ids, int64_t table_rows, int64_t padding_idx, Tensor& rows,
                         Tensor& values) {
  WEFT_ASSERT(ids.is_contiguous() && rows.is_contiguous() && values.is_contiguous());
  const Tensor from = raw::contiguous(dy);
  fill(rows, table_rows);
  fill(values, 0);
  dispatch_index("embedding", ids.dtype(), [&]<class I>() {
    RowRuns lists(ids.data<I>(), ids.numel(), table_rows, padding_idx);
    int64_t* const row = rows.data<int64_t>();
    for (size_t k = 0; k < lists.runs.size(); ++k) row[k] = std::exchange(lists.runs[k].row, static_cast<int64_t>(k));
    dispatch_floating("embedding", dy.dtype(),
                      [&]<class T>() { add_rows(lists, from.data<T>(), values.data<T>(), values.sizes()[1]); });
  });
}

void put_rows(const Tensor& values, const Tensor& rows, Tensor& out) {
  WEFT_ASSERT(values.is_contiguous() && rows.is_contiguous() && out.is_contiguous() && values.dtype() == out.dtype());
  const int64_t width = out.sizes()[1], bytes = width * size_of(out.dtype());
  const int64_t* const row = rows.data<int64_t>();
  const auto* from = static_cast<const char*>(values.raw_data());
  auto* to = static_cast<char*>(out.raw_data());
  parallel_for(rows.numel(), std::max<int64_t>(1, kGrain / std::max<int64_t>(width, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i)
                   if (row[i] < out.sizes()[0])
                     std::memcpy(to + row[i] * bytes, from + i * bytes, static_cast<size_t>(bytes));
               });
}

}  // namespace weft::cpu_kernels
