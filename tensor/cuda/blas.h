// Matrix products for the matmul and conv kernels of the plug-ins: cuBLASLt's with CUDA, a host product in the
// emulator. Row-major throughout; results are the same bits in every run.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace weft::blas {

/// What is done to a product before it is written: the bias is added, then the activation is applied.
enum class Epilogue : uint8_t { none, relu, gelu_tanh, bias, bias_relu, bias_gelu_tanh };

constexpr bool has_bias(Epilogue e) { return e >= Epilogue::bias; }

/// A factor as it lies in memory: rows of elements without gaps. `transposed`: the product reads its columns as rows.
struct Factor {
  const void* data = nullptr;
  int64_t row = 0;    ///< elements from one row to the next, at least a row's length
  int64_t batch = 0;  ///< elements from one matrix to the next; 0: the same one for all
  bool transposed = false;
};

/// c [m, n] = epilogue(a [m, k] · b [k, n]), or added to c, for each matrix of a batch. All sizes are above 0.
struct Gemm {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  DType dtype = f32;      ///< of a and b, floating; 16-bit types are summed in f32
  DType out_dtype = f32;  ///< of c and the bias: `dtype`, or f32 for 16-bit factors
  Factor a = {}, b = {};
  void* c = nullptr;
  int64_t c_row = 0, c_batch = 0;  ///< as a factor's; matrices of a batch may lie side by side in the same rows
  bool accumulate = false;         ///< c is added to; without an epilogue only
  Epilogue epilogue = Epilogue::none;
  const void* bias = nullptr;  ///< [n]
  int64_t bias_batch = 0;      ///< elements from one matrix's bias to the next
};

/// Puts the product into the current stream. False, with nothing done, where the library does not have it with this
/// epilogue: then the caller runs it without and applies the epilogue itself. Throws weft::Error where it fails.
bool gemm(const Gemm& g);

}  // namespace weft::blas
