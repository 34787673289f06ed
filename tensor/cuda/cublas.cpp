// blas.h by cuBLASLt. It is column-major: c = a · b in rows is cᵀ = bᵀ · aᵀ in columns, so the factors change places.
// What its heuristic chose is kept by problem, so that a problem is always computed in the same way.
#include <cublasLt.h>

#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "tensor/cuda/blas.h"
#include "tensor/cuda/per_device.h"
#include "tensor/cuda/workspace.h"
#include "tensor/precision.h"
#include "tensor/step_values.h"
#include "tensor/stream.h"

namespace weft::blas {
namespace {

constexpr int64_t kMostWorkspace = int64_t{32} << 20;
constexpr int64_t kMostBatch = 65535;  // matrices in one call: a grid's third dimension
constexpr int64_t kAlignment = 16;     // more is never promised to the heuristic: what it picks must not depend on it
constexpr size_t kMostAlgorithms = 4096;  // kept, for each device

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) [[likely]]
    return;
  fail("cublas", fmt::format("{}: {} ({})", call, cublasLtGetStatusString(status), cublasLtGetStatusName(status)));
}

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case f32:
      return CUDA_R_32F;
    case f64:
      return CUDA_R_64F;
    case bf16:
      return CUDA_R_16BF;
    case f16:
      return CUDA_R_16F;
    default:
      fail_dtype("cublas", "a floating dtype", dtype);
  }
}

cublasLtEpilogue_t type_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::relu:
      return CUBLASLT_EPILOGUE_RELU;
    case Epilogue::gelu_tanh:
      return CUBLASLT_EPILOGUE_GELU;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_relu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::bias_gelu_tanh:
      return CUBLASLT_EPILOGUE_GELU_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// A column-major matrix: `rows` elements without gaps, `columns` times.
class Layout {
 public:
  Layout(DType dtype, int64_t rows, int64_t columns, int64_t leading, int64_t batch, int64_t batch_stride) {
    check(cublasLtMatrixLayoutInit(&layout_, type_of(dtype), static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), leading),
          "cublasLtMatrixLayoutInit");
    if (batch == 1) return;
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride);
  }
  cublasLtMatrixLayout_t get() const { return &layout_; }

 private:
  template <class T>
  void set(cublasLtMatrixLayoutAttribute_t attribute, T value) {
    check(cublasLtMatrixLayoutSetAttribute(&layout_, attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute");
  }

  mutable cublasLtMatrixLayoutOpaque_t layout_;
};

Layout layout_of(DType dtype, const Factor& f, int64_t rows, int64_t columns, int64_t batch) {
  return f.transposed ? Layout(dtype, rows, columns, f.row, batch, f.batch)
                      : Layout(dtype, columns, rows, f.row, batch, f.batch);
}

/// What is computed, apart from where.
class Operation {
 public:
  Operation(const Gemm& g, const void* bias) {
    const bool wide = g.dtype == f64;
    const auto compute = wide                               ? CUBLAS_COMPUTE_64F
                         : g.dtype == f32 && tf32_allowed() ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                            : CUBLAS_COMPUTE_32F;
    check(cublasLtMatmulDescInit(&operation_, compute, wide ? CUDA_R_64F : CUDA_R_32F), "cublasLtMatmulDescInit");
    set(CUBLASLT_MATMUL_DESC_TRANSA, g.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, g.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (g.epilogue == Epilogue::none) return;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, type_of(g.epilogue));
    if (!has_bias(g.epilogue)) return;
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    set(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, g.bias_batch);
  }
  cublasLtMatmulDesc_t get() const { return &operation_; }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    check(cublasLtMatmulDescSetAttribute(&operation_, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  mutable cublasLtMatmulDescOpaque_t operation_;
};

uint32_t alignment_of(const void* data) {
  auto alignment = static_cast<uintptr_t>(kAlignment);
  while (reinterpret_cast<uintptr_t>(data) % alignment != 0) alignment /= 2;
  return static_cast<uint32_t>(alignment);
}

class Preference {
 public:
  explicit Preference(const Gemm& g) {
    check(cublasLtMatmulPreferenceInit(&preference_), "cublasLtMatmulPreferenceInit");
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(kMostWorkspace));
    // Parts of a long sum are kept in the compute type and added in a fixed order.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(g.b.data));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(g.a.data));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(g.c));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(g.c));
  }
  cublasLtMatmulPreference_t get() const { return &preference_; }

 private:
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublasLtMatmulPreferenceSetAttribute(&preference_, attribute, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }

  mutable cublasLtMatmulPreferenceOpaque_t preference_;
};

/// All that the choice of an algorithm depends on.
using Key = std::array<int64_t, 12>;

struct HashKey {
  size_t operator()(const Key& key) const {
    uint64_t h = 0xcbf29ce484222325u;
    for (const int64_t v : key) h = (h ^ static_cast<uint64_t>(v)) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
    return h;
  }
};

Key key_of(const Gemm& g) {
  int64_t flags = g.a.transposed | g.b.transposed << 1 | g.accumulate << 2 | tf32_allowed() << 3;
  for (const int64_t part :
       {static_cast<int64_t>(g.dtype), static_cast<int64_t>(g.out_dtype), static_cast<int64_t>(g.epilogue),
        int64_t{alignment_of(g.a.data)}, int64_t{alignment_of(g.b.data)}, int64_t{alignment_of(g.c)}})
    flags = flags << 5 | part;
  return {g.m, g.n, g.k, g.batch, g.a.row, g.a.batch, g.b.row, g.b.batch, g.c_row, g.c_batch, g.bias_batch, flags};
}

struct Algorithm {
  cublasLtMatmulAlgo_t algorithm;
  int64_t workspace;
};

/// One device's handle, and what was found for it; none: there is no algorithm.
struct DeviceState {
  std::mutex mutex;
  cublasLtHandle_t handle = nullptr;
  std::unordered_map<Key, std::optional<Algorithm>, HashKey> found;
};

struct Call {
  Operation operation;
  Layout a, b, c;

  /// With `bias` in place of the bias' address.
  Call(const Gemm& g, const void* bias)
      : operation(g, bias),
        a(layout_of(g.dtype, g.b, g.k, g.n, g.batch)),
        b(layout_of(g.dtype, g.a, g.m, g.k, g.batch)),
        c(g.out_dtype, g.n, g.m, g.c_row, g.batch, g.c_batch) {}
};

std::optional<Algorithm> ask_heuristic(cublasLtHandle_t handle, const Gemm& g) {
  // The heuristic looks at the address of the bias for its alignment.
  const Call call(g, reinterpret_cast<const void*>(kAlignment));
  const Preference preference(g);
  std::array<cublasLtMatmulHeuristicResult_t, 4> results{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle, call.operation.get(), call.a.get(), call.b.get(), call.c.get(), call.c.get(), preference.get(),
      static_cast<int>(results.size()), results.data(), &count);
  const bool refused =
      status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_INVALID_VALUE && g.epilogue != Epilogue::none);
  if (!refused) check(status, "cublasLtMatmulAlgoGetHeuristic");
  for (size_t i = 0; !refused && i < static_cast<size_t>(count); ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS)
      return Algorithm{results[i].algo, static_cast<int64_t>(results[i].workspaceSize)};
  return {};
}

std::optional<Algorithm> algorithm_for(DeviceState& device, const Gemm& g) {
  const Key key = key_of(g);
  std::lock_guard lock(device.mutex);
  if (!device.handle) check(cublasLtCreate(&device.handle), "cublasLtCreate");
  if (const auto known = device.found.find(key); known != device.found.end()) return known->second;
  if (device.found.size() >= kMostAlgorithms) device.found.clear();
  return device.found.emplace(key, ask_heuristic(device.handle, g)).first->second;
}

/// Kernels read a bias 16 bytes at a time, whatever the heuristic was told of it.
bool bias_is_aligned(const Gemm& g) {
  if (!has_bias(g.epilogue)) return true;
  return alignment_of(g.bias) == kAlignment && (g.batch == 1 || g.bias_batch * size_of(g.out_dtype) % kAlignment == 0);
}

bool run(const Gemm& g) {
  if (!bias_is_aligned(g)) return false;
  auto& device = cuda::state_of_current_device<DeviceState>();
  const std::optional<Algorithm> found = algorithm_for(device, g);
  if (!found && g.epilogue != Epilogue::none) return false;
  if (!found)
    fail("cublas", fmt::format("has no algorithm for {} x [{}, {}] · [{}, {}] of {}", g.batch, g.m, g.k, g.k, g.n,
                               name(g.dtype)));
  const Call call(g, g.bias);
  const Workspace scratch(found->workspace, {DeviceType::cuda, static_cast<int16_t>(cuda::current_device())});
  const double one = 1, beta = g.accumulate;
  const float one_f32 = 1, beta_f32 = g.accumulate;
  const bool wide = g.dtype == f64;
  check(cublasLtMatmul(device.handle, call.operation.get(), wide ? static_cast<const void*>(&one) : &one_f32, g.b.data,
                       call.a.get(), g.a.data, call.b.get(), wide ? static_cast<const void*>(&beta) : &beta_f32, g.c,
                       call.c.get(), g.c, call.c.get(), &found->algorithm, scratch.data(),
                       static_cast<size_t>(found->workspace), static_cast<cudaStream_t>(used_stream())),
        "cublasLtMatmul");
  return true;
}

const void* ahead(const void* data, int64_t elements, DType dtype) {
  return static_cast<const char*>(data) + elements * size_of(dtype);
}

}  // namespace

bool gemm(const Gemm& g) {
  if (StepValues::refreshing()) return true;  // the captured step has it
  if (g.batch <= kMostBatch) return run(g);
  if (g.epilogue != Epilogue::none) return false;
  for (int64_t done = 0; done < g.batch; done += kMostBatch) {
    Gemm part = g;
    part.batch = std::min(kMostBatch, g.batch - done);
    part.a.data = ahead(g.a.data, done * g.a.batch, g.dtype);
    part.b.data = ahead(g.b.data, done * g.b.batch, g.dtype);
    part.c = const_cast<void*>(ahead(g.c, done * g.c_batch, g.out_dtype));
    run(part);
  }
  return true;
}

}  // namespace weft::blas
