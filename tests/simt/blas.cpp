// Stands in for cuBLASLt on the emulated device: plain sums on the host, as an operation of the stream. It refuses the
// epilogues of f64, so that what the kernels do then is tested as well.
#include "tensor/cuda/blas.h"

#include <simt.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/stream.h"

namespace weft::blas {
namespace {

/// A factor as rows of the product's own type.
template <class Sum, class T>
std::vector<Sum> unpacked(const Factor& f, int64_t index, int64_t rows, int64_t columns) {
  const T* const from = static_cast<const T*>(f.data) + index * f.batch;
  std::vector<Sum> to(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      to[static_cast<size_t>(i * columns + j)] =
          static_cast<Sum>(f.transposed ? from[j * f.row + i] : from[i * f.row + j]);
  return to;
}

/// to [n] += the sums over [begin, end) of a [k] and b [k, n].
template <class Sum>
void add_products(const Sum* a, const Sum* b, int64_t begin, int64_t end, int64_t n, Sum* to) {
  for (int64_t k = begin; k < end; ++k)
    for (int64_t j = 0; j < n; ++j) to[j] += a[k] * b[k * n + j];
}

template <class Sum>
Sum finished(Epilogue epilogue, Sum v) {
  switch (epilogue) {
    case Epilogue::relu:
    case Epilogue::bias_relu:
      return v > 0 ? v : 0;  // NaN becomes 0, as in cuBLASLt
    case Epilogue::gelu_tanh:
    case Epilogue::bias_gelu_tanh:
      return Sum(0.5) * v * (1 + std::tanh(Sum(0.7978845608028654) * (v + Sum(0.044715) * v * v * v)));
    case Epilogue::none:
    case Epilogue::bias:
      break;
  }
  return v;
}

template <class T, class Out>
void run(const Gemm& g) {
  using Sum = compute_t<T>;
  constexpr int64_t kPart = 64;  // long sums are sums of parts, as on a GPU
  const Out* const bias = has_bias(g.epilogue) ? static_cast<const Out*>(g.bias) : nullptr;
  std::vector<Sum> row(static_cast<size_t>(g.n)), part(row);
  for (int64_t i = 0; i < g.batch; ++i) {
    const std::vector<Sum> a = unpacked<Sum, T>(g.a, i, g.m, g.k), b = unpacked<Sum, T>(g.b, i, g.k, g.n);
    for (int64_t m = 0; m < g.m; ++m) {
      std::fill(row.begin(), row.end(), Sum(0));
      for (int64_t k = 0; k < g.k; k += kPart) {
        std::fill(part.begin(), part.end(), Sum(0));
        add_products(a.data() + m * g.k, b.data(), k, std::min(g.k, k + kPart), g.n, part.data());
        for (size_t j = 0; j < row.size(); ++j) row[j] += part[j];
      }
      Out* const c = static_cast<Out*>(g.c) + i * g.c_batch + m * g.c_row;
      for (int64_t n = 0; n < g.n; ++n) {
        Sum v = row[static_cast<size_t>(n)];
        if (bias) v += static_cast<Sum>(bias[i * g.bias_batch + n]);
        if (g.accumulate) v += static_cast<Sum>(c[n]);
        c[n] = static_cast<Out>(finished(g.epilogue, v));
      }
    }
  }
}

}  // namespace

bool gemm(const Gemm& g) {
  WEFT_ASSERT(g.m > 0 && g.n > 0 && g.k > 0 && g.batch > 0 && !(g.accumulate && g.epilogue != Epilogue::none));
  WEFT_ASSERT(g.a.row >= (g.a.transposed ? g.m : g.k) && g.b.row >= (g.b.transposed ? g.k : g.n) && g.c_row >= g.n);
  if (g.dtype == f64 && g.epilogue != Epilogue::none) return false;
  dispatch_floating("blas", g.dtype, [&]<class T>() {
    const bool widened = g.out_dtype != g.dtype;
    WEFT_ASSERT(!widened || (g.out_dtype == f32 && size_of(g.dtype) == 2));
    simt::enqueue(static_cast<cudaStream_t>(used_stream()), [g, widened] {
      if (widened)
        run<T, compute_t<T>>(g);
      else
        run<T, T>(g);
    });
  });
  return true;
}

}  // namespace weft::blas
