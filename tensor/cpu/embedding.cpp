// Rows of a table by index, and the sums of their gradients.
#include <cstring>

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

}  // namespace weft::cpu_kernels
