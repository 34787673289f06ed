// Every status of the CUDA runtime is checked; an error names the call.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>

#include "tensor/error.h"

namespace weft::cuda {

/// Throws "[cuda] cudaMalloc: out of memory (cudaErrorMemoryAllocation)" unless `status` is success.
inline void check(cudaError_t status, std::string_view call) {
  if (status == cudaSuccess) [[likely]]
    return;
  (void)cudaGetLastError();  // an error that does not last is not to come back from the next call
  fail("cuda", std::string(call.substr(0, call.find('('))) + ": " + cudaGetErrorString(status) + " (" +
                   cudaGetErrorName(status) + ")");
}

}  // namespace weft::cuda

#define CUDA_CHECK(call) ::weft::cuda::check(call, #call)
