// Every status of the CUDA runtime is checked; an error names the call.
#pragma once

#include <cuda_runtime_api.h>

#include "tensor/error.h"

namespace weft::cuda {

/// Throws "[cuda] cudaMalloc: out of memory (cudaErrorMemoryAllocation)" unless `status` is success.
void check(cudaError_t status, const char* call);

}  // namespace weft::cuda

#define CUDA_CHECK(call) ::weft::cuda::check(call, #call)
