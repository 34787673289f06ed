// Matrix products: oneDNN for f32, and for bf16 where the CPU has it; 16-bit types go through f32 otherwise. A plain
// loop for f64.
#include "tensor/cpu/onednn.h"
#include "tensor/kernels.h"
#include "tensor/threads.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

/// Strides that oneDNN takes: one of the two matrix strides is 1 and the other passes the row. Copies where it must.
Tensor as_matrices(const Tensor& x) {
  const int64_t d = x.dim();
  const int64_t rows = x.sizes()[d - 2], columns = x.sizes()[d - 1];
  Shape strides = x.strides();
  if (columns == 1 || strides[d - 1] == 1) {
    strides[d - 1] = 1;
    if (rows == 1) strides[d - 2] = columns;
    if (strides[d - 2] >= columns) return raw::view(x, x.sizes(), strides, x.offset());
  } else if (rows == 1 || strides[d - 2] == 1) {
    strides[d - 2] = 1;
    if (strides[d - 1] >= rows) return raw::view(x, x.sizes(), strides, x.offset());
  }
  return raw::clone(raw::contiguous(x));
}

bool has_expanded_batch(const Tensor& x) { return x.dim() == 3 && x.sizes()[0] > 1 && x.strides()[0] == 0; }

/// A batch that was expanded is one matrix to oneDNN.
Tensor without_expanded_batch(const Tensor& x) { return has_expanded_batch(x) ? raw::narrow(x, 0, 0, 1) : x; }

/// A batch of matrices that all meet the same b, as one matrix of all their rows: x itself where that needs a copy.
Tensor rows_of_batch(const Tensor& x) {
  const Shape &sizes = x.sizes(), &strides = x.strides();
  if (strides[0] != sizes[1] * strides[1]) return x;
  return raw::view(x, {sizes[0] * sizes[1], sizes[2]}, {strides[1], strides[2]}, x.offset());
}

/// False, and nothing done, where oneDNN has only plain loops for a 16-bit product.
bool matmul_onednn(const Tensor& a_any, const Tensor& b_any, const Tensor& bias, Activation activation, Tensor& out) {
  const Tensor a = as_matrices(without_expanded_batch(a_any)), b = as_matrices(without_expanded_batch(b_any));
  Shape bias_sizes = Shape::filled(out.dim(), 1);
  bias_sizes[out.dim() - 1] = out.sizes().back();
  const auto bias_desc = bias.defined() ? onednn::describe(bias_sizes, contiguous_strides(bias_sizes), bias.dtype())
                                        : dnnl::memory::desc();
  const auto a_desc = onednn::describe(a), b_desc = onednn::describe(b), out_desc = onednn::describe(out);
  onednn::Key key;
  key.add('m').add(static_cast<int64_t>(out.dtype())).add(static_cast<int64_t>(activation)).add(bias.defined());
  key.add(a.sizes()).add(a.strides()).add(b.sizes()).add(b.strides()).add(out.strides());
  const onednn::Prepared& p = onednn::prepared(key, [&] {
    const dnnl::primitive_attr attr = onednn::attributes(activation);
#if DNNL_VERSION_MAJOR < 3
    const dnnl::matmul::primitive_desc pd(bias.defined() ? dnnl::matmul::desc(a_desc, b_desc, bias_desc, out_desc)
                                                         : dnnl::matmul::desc(a_desc, b_desc, out_desc),
                                          attr, onednn::engine());
#else
    const dnnl::matmul::primitive_desc pd = bias.defined()
        ? dnnl::matmul::primitive_desc(onednn::engine(), a_desc, b_desc, bias_desc, out_desc, attr)
        : dnnl::matmul::primitive_desc(onednn::engine(), a_desc, b_desc, out_desc, attr);
#endif
    return onednn::Prepared{dnnl::matmul(pd),          a_desc, b_desc, bias_desc, out_desc, pd.scratchpad_desc(),
                            onednn::is_plain_loops(pd)};
  });
  if (p.plain_loops) {
    if (has_expanded_batch(a_any) || has_expanded_batch(b_any))
      return matmul_onednn(raw::contiguous(a_any), raw::contiguous(b_any), bias, activation, out);
    if (out.dtype() != DType::f32) return false;
  }
  onednn::run(p, {{DNNL_ARG_SRC, a.raw_data(), a_desc, &p.source},
                  {DNNL_ARG_WEIGHTS, b.raw_data(), b_desc, &p.weights},
                  {DNNL_ARG_BIAS, bias.defined() ? bias.raw_data() : nullptr, bias_desc, &p.bias},
                  {DNNL_ARG_DST, out.raw_data(), out_desc, &p.destination, true}});
  return true;
}

/// In f32, an expanded batch staying one matrix.
Tensor widened(const Tensor& x) {
  return x.defined() ? raw::expand(raw::to(without_expanded_batch(x), DType::f32), x.sizes()) : x;
}

/// f64 is for gradient checks and references: correct, threaded, no more.
void matmul_f64(const Tensor& a_any, const Tensor& b_any, const Tensor& bias, Activation activation, Tensor& out) {
  const Tensor a = raw::contiguous(a_any), b = raw::contiguous(b_any);
  const int64_t batch = out.dim() == 3 ? out.sizes()[0] : 1;
  const int64_t rows = a.size(-2), inner = a.size(-1), columns = b.size(-1);
  const double *pa = a.data<double>(), *pb = b.data<double>(), *pc = bias.defined() ? bias.data<double>() : nullptr;
  double* po = out.data<double>();
  parallel_for(batch * rows, std::max<int64_t>(1, 32768 / std::max<int64_t>(1, inner * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   double* const o = po + r * columns;
                   const double* const m = pb + r / rows * inner * columns;
                   for (int64_t j = 0; j < columns; ++j) o[j] = pc ? pc[j] : 0;
                   for (int64_t k = 0; k < inner; ++k) {
                     const double v = pa[r * inner + k];
                     for (int64_t j = 0; j < columns; ++j) o[j] += v * m[k * columns + j];
                   }
                 }
               });
  if (activation != Activation::none) bias_activation(out, Tensor(), 0, activation, out);
}

}  // namespace

void matmul(const Tensor& a, const Tensor& b, const Tensor& bias, Activation activation, Tensor& out) {
  WEFT_ASSERT(out.is_contiguous() && (!bias.defined() || bias.is_contiguous()));
  if (out.numel() == 0) return;
  if (a.size(-1) == 0) {  // an empty sum
    if (bias.defined())
      copy(raw::expand(bias, out.sizes()), out);
    else
      fill(out, 0);
    if (activation != Activation::none) bias_activation(out, Tensor(), 0, activation, out);
    return;
  }
  if (out.dim() == 3 && out.sizes()[0] > 1 && b.strides()[0] == 0) {
    const Tensor rows = rows_of_batch(a);
    Tensor out_rows = rows_of_batch(out);
    if (rows.dim() == 2) return matmul(rows, raw::select(b, 0, 0), bias, activation, out_rows);
  }
  if (has_expanded_batch(a) && has_expanded_batch(b)) {
    Tensor first = raw::narrow(out, 0, 0, 1), rest = raw::narrow(out, 0, 1, out.sizes()[0] - 1);
    matmul(raw::narrow(a, 0, 0, 1), raw::narrow(b, 0, 0, 1), bias, activation, first);
    return copy(raw::expand(first, rest.sizes()), rest);
  }
  switch (out.dtype()) {
    case DType::f32:
      matmul_onednn(a, b, bias, activation, out);
      return;
    case DType::f64:
      return matmul_f64(a, b, bias, activation, out);
    case DType::bf16:
    case DType::f16: {
      if (onednn::multiplies(out.dtype()) && matmul_onednn(a, b, bias, activation, out)) return;
      Tensor wide = empty(out.sizes(), DType::f32);
      matmul_onednn(widened(a), widened(b), widened(bias), activation, wide);
      return copy(wide, out);
    }
    default:
      fail("matmul", fmt::format("wants a floating dtype, got {}", name(out.dtype())));
  }
}

}  // namespace weft::cpu_kernels
