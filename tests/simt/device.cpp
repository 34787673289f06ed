// The one device of the emulator, as the runtime API describes it.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

#include "tests/simt/simt.h"
#include "tests/simt/stream.h"

using namespace simt;

namespace {
constexpr int kProcessors = 4;  // few, so that grids sized by it stay small
constexpr int kThreads = 2048;  // of a processor
}  // namespace

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return fail(cudaErrorInvalidDevice);
  cudaDeviceProp p{};
  std::strcpy(p.name, "SIMT emulator");
  p.totalGlobalMem = options().memory_bytes;
  p.sharedMemPerBlock = 48 << 10;
  p.sharedMemPerBlockOptin = options().shared_bytes;
  p.sharedMemPerMultiprocessor = options().shared_bytes + 1024;
  p.reservedSharedMemPerBlock = 1024;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.maxThreadsPerBlock = 1024;
  p.maxThreadsPerMultiProcessor = kThreads;
  p.maxBlocksPerMultiProcessor = 32;
  std::copy_n(std::to_array({1024, 1024, 64}).data(), 3, p.maxThreadsDim);
  std::copy_n(std::to_array({0x7fffffff, 65535, 65535}).data(), 3, p.maxGridSize);
  p.major = 9;
  p.minor = 0;
  p.multiProcessorCount = kProcessors;
  p.l2CacheSize = 1 << 20;
  p.memoryBusWidth = 64;
  p.canMapHostMemory = p.unifiedAddressing = p.concurrentKernels = p.asyncEngineCount = 1;
  *properties = p;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(p.sharedMemPerBlock);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(p.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = static_cast<int>(p.sharedMemPerMultiprocessor);
      break;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      break;
    case cudaDevAttrL2CacheSize:
      *value = p.l2CacheSize;
      break;
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrConcurrentKernels:
      *value = 1;
      break;
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
    case cudaDevAttrIntegrated:
    case cudaDevAttrCooperativeLaunch:
    case cudaDevAttrMemoryPoolsSupported:
      *value = 0;
      break;
    default:
      return fail(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute attribute, int value) {
  const bool too_much = attribute == cudaFuncAttributeMaxDynamicSharedMemorySize &&
                        (value < 0 || static_cast<size_t>(value) > options().shared_bytes);
  return too_much ? fail(cudaErrorInvalidValue) : cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int block_size, size_t) {
  if (block_size < 1 || block_size > 1024) return fail(cudaErrorInvalidValue);
  *blocks = std::min(32, kThreads / block_size);
  return cudaSuccess;
}
