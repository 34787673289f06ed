// Memory, copies, the device and the errors of the emulator's runtime API.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/simt/runtime_test.h"
#include "tests/simt/simt.h"

namespace weft::planted {
namespace {

TEST(Runtime, DeviceMemoryStartsAsNaNAndIsLimited) {
  const size_t before = simt::options().memory_bytes;
  const Floats x(device, 100);
  for (size_t i = 0; i < x.size; ++i) EXPECT_TRUE(std::isnan(x[i]));
  size_t free = 0, total = 0;
  EXPECT_CUDA(cudaMemGetInfo(&free, &total));
  EXPECT_EQ(total, before);
  EXPECT_LE(free, total - 400);
  simt::options().memory_bytes = total - free + 1000;
  void *p = nullptr, *q = nullptr;
  EXPECT_EQ(cudaMalloc(&p, 1001), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_CUDA(cudaMalloc(&p, 600));
  EXPECT_EQ(cudaMalloc(&q, 600), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaMallocHost(&q, 6000)) << "the host's memory does not count";
  EXPECT_CUDA(cudaFree(p));
  EXPECT_CUDA(cudaMalloc(&p, 1000));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0u);
  EXPECT_EQ(cudaFreeHost(p), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFree(q), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(p));
  EXPECT_CUDA(cudaFreeHost(q));
  EXPECT_CUDA(cudaFree(nullptr));
  simt::options().memory_bytes = before;
}

TEST(Runtime, Copies) {
  const Floats x(device, 12), y(device, 12);
  std::vector<float> host(12), back(12);
  for (size_t i = 0; i < 12; ++i) host[i] = static_cast<float>(i);
  EXPECT_CUDA(cudaMemcpy(x.data, host.data(), 48, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaMemcpy(y.data, x.data, 48, cudaMemcpyDeviceToDevice));
  EXPECT_CUDA(cudaMemcpy(back.data(), y.data, 48, cudaMemcpyDefault));
  EXPECT_EQ(back, host);
  // Columns 1 and 2 of [3, 4] into the first two of [3, 2].
  EXPECT_CUDA(cudaMemcpy2DAsync(y.data, 8, x.data + 1, 16, 8, 3, cudaMemcpyDeviceToDevice, nullptr));
  EXPECT_CUDA(cudaMemset(y.data + 6, 0, 24));
  EXPECT_CUDA(cudaMemcpy(back.data(), y.data, 48, cudaMemcpyDeviceToHost));
  EXPECT_EQ(back, std::vector<float>({1, 2, 5, 6, 9, 10, 0, 0, 0, 0, 0, 0}));
  EXPECT_CUDA(cudaMemcpy2DAsync(x.data, 16, host.data() + 2, 16, 8, 3, cudaMemcpyHostToDevice, nullptr));
  EXPECT_CUDA(cudaMemcpy2D(back.data(), 8, x.data, 16, 8, 3, cudaMemcpyDeviceToHost));
  EXPECT_EQ(std::vector<float>(back.begin(), back.begin() + 6), std::vector<float>({2, 3, 6, 7, 10, 11}));
}

TEST(Runtime, CopiesOfTheWrongKindOrSizeAreRefused) {
  const Floats x(device, 10), p(pinned, 10);
  std::vector<float> host(20);
  EXPECT_EQ(cudaMemcpy(host.data(), x.data, 40, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(x.data, host.data(), 40, cudaMemcpyDeviceToHost), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(host.data(), host.data(), 40, cudaMemcpyDeviceToDevice), cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(cudaMemcpy(x.data, host.data(), 44, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(p.data + 1, x.data, 40, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(x.data, 0, 41), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(host.data(), 0, 40), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy2D(x.data, 4, host.data(), 8, 8, 2, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemcpy(x.data, host.data(), 0, cudaMemcpyHostToDevice));
  void* address = nullptr;
  EXPECT_CUDA(cudaHostGetDevicePointer(&address, p.data, 0));
  EXPECT_EQ(address, p.data);
  EXPECT_EQ(cudaHostGetDevicePointer(&address, host.data(), 0), cudaErrorInvalidValue);
  cudaPointerAttributes attributes;
  EXPECT_CUDA(cudaPointerGetAttributes(&attributes, x.data + 3));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  cudaGetLastError();
}

TEST(Runtime, Device) {
  int count = 0, value = 0;
  EXPECT_CUDA(cudaGetDeviceCount(&count));
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  cudaDeviceProp properties;
  EXPECT_CUDA(cudaGetDeviceProperties(&properties, 0));
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, 227u * 1024);
  EXPECT_CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  EXPECT_EQ(value, properties.major);
  EXPECT_CUDA(cudaRuntimeGetVersion(&value));
  EXPECT_EQ(value, CUDART_VERSION);
}

TEST(Runtime, HandlesThatAreNone) {
  auto* none = reinterpret_cast<cudaStream_t>(0x1000);
  EXPECT_EQ(cudaStreamSynchronize(none), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  cudaStream_t stream = nullptr;
  EXPECT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_CUDA(cudaStreamDestroy(stream));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_THROW(simt::enqueue(none, [] {}), simt::Error);
  cudaGetLastError();
}

}  // namespace
}  // namespace weft::planted
