// Matrix products: the BLAS reads most strides as they are; what it cannot read is copied.
#include <optional>

#include "tensor/cuda/map.cuh"
#include "tensor/cuda/product.h"
#include "tensor/functors.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// How the BLAS reads x's last two dimensions, if it can: one of them has stride 1, and the other passes it.
std::optional<blas::Factor> as_factor(const Tensor& x) {
  const int64_t d = x.dim(), rows = x.sizes()[d - 2], columns = x.sizes()[d - 1];
  const int64_t row = x.strides()[d - 2], column = x.strides()[d - 1];
  blas::Factor f{.data = x.raw_data(), .batch = d == 3 && x.sizes()[0] > 1 ? x.strides()[0] : 0};
  if ((columns == 1 || column == 1) && (rows == 1 || row >= columns)) {
    f.row = rows == 1 ? columns : row;
    return f;
  }
  if ((rows == 1 || row == 1) && (columns == 1 || column >= rows)) {
    f.row = columns == 1 ? rows : column;
    f.transposed = true;
    return f;
  }
  return {};
}

/// A batch that was expanded is one matrix.
Tensor without_expanded_batch(const Tensor& x) {
  return x.dim() == 3 && x.sizes()[0] > 1 && x.strides()[0] == 0 ? raw::select(x, 0, 0) : x;
}

/// x's factor; `copy` owns the memory where a copy had to be made.
blas::Factor factor_of(const Tensor& x, Tensor& copy) {
  if (const auto f = as_factor(x)) return *f;
  copy = raw::contiguous(without_expanded_batch(x));
  return *as_factor(copy);
}

/// Matrices that meet the same b are one with more rows, where a's rows go on evenly from one to the next.
void join_batch(blas::Gemm& g) {
  const bool even = g.m == 1 ? g.a.batch >= g.k : g.a.batch == g.m * g.a.row;
  if (g.batch == 1 || g.b.batch != 0 || g.a.transposed || !even) return;
  if (g.m == 1) g.a.row = g.a.batch;
  g.m *= g.batch;
  g.batch = 1;
}

blas::Epilogue epilogue_of(bool bias, Activation activation) {
  switch (activation) {
    case Activation::none:
    case Activation::gelu:  // by erf, which the BLAS has not
      return bias ? blas::Epilogue::bias : blas::Epilogue::none;
    case Activation::relu:
      return bias ? blas::Epilogue::bias_relu : blas::Epilogue::relu;
    case Activation::gelu_tanh:
      return bias ? blas::Epilogue::bias_gelu_tanh : blas::Epilogue::gelu_tanh;
  }
  return blas::Epilogue::none;
}

}  // namespace

void product(blas::Gemm g, const Tensor& bias, Activation activation, Tensor& out) {
  g.epilogue = epilogue_of(bias.defined(), activation);
  g.bias = bias.defined() ? bias.raw_data() : nullptr;
  if (blas::gemm(g)) {
    if (activation == Activation::gelu) finish({}, activation, out);
    return;
  }
  g.epilogue = blas::Epilogue::none;
  blas::gemm(g);
  finish(bias, activation, out);
}

void matmul(const Tensor& a, const Tensor& b, const Tensor& bias, Activation activation, Tensor& out) {
  WEFT_ASSERT(out.is_contiguous() && (!bias.defined() || bias.is_contiguous()));
  if (out.numel() == 0) return;
  const int64_t d = out.dim(), inner = a.sizes()[d - 1];
  if (inner == 0) {  // an empty sum
    fill(out, 0);
    return finish(bias, activation, out);
  }
  Tensor a_copy, b_copy;
  blas::Gemm g{.m = out.sizes()[d - 2],
               .n = out.sizes()[d - 1],
               .k = inner,
               .batch = d == 3 ? out.sizes()[0] : 1,
               .dtype = out.dtype(),
               .out_dtype = out.dtype(),
               .a = factor_of(a, a_copy),
               .b = factor_of(b, b_copy),
               .c = out.raw_data()};
  g.c_row = g.n;
  g.c_batch = g.m * g.n;
  join_batch(g);
  product(g, bias, activation, out);
}

}  // namespace weft::WEFT_GPU
