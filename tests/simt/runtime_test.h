// Owners of the runtime API's things, for the emulator's own tests.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "tests/simt/simt.h"

#define EXPECT_CUDA(call) EXPECT_EQ(call, cudaSuccess)

namespace weft::planted {

/// Eager or lazy streams, until it goes.
class Mode {
 public:
  explicit Mode(bool lazy) : before_(simt::options().lazy_streams) { simt::options().lazy_streams = lazy; }
  ~Mode() {
    cudaDeviceSynchronize();
    simt::options().lazy_streams = before_;
  }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;

 private:
  bool before_;
};

struct Stream {
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { cudaStreamCreateWithFlags(&handle, flags); }
  ~Stream() { cudaStreamDestroy(handle); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t handle = nullptr;
};

struct Event {
  Event() { cudaEventCreateWithFlags(&handle, cudaEventDefault); }
  ~Event() { cudaEventDestroy(handle); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t handle = nullptr;
};

enum class Kind { pinned, device };
inline constexpr Kind pinned = Kind::pinned, device = Kind::device;

struct Floats {
  Floats(Kind k, size_t n) : kind(k), size(n) {
    void* memory = nullptr;
    if (kind == pinned) cudaHostAlloc(&memory, bytes(), cudaHostAllocMapped);
    if (kind == device) cudaMalloc(&memory, bytes());
    data = static_cast<float*>(memory);
  }
  Floats(Kind k, size_t n, float value) : Floats(k, n) { fill(value); }
  ~Floats() { kind == pinned ? cudaFreeHost(data) : cudaFree(data); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  size_t bytes() const { return size * sizeof(float); }
  void fill(float value) const { std::fill_n(data, size, value); }
  float& operator[](size_t i) const { return data[i]; }

  Kind kind;
  size_t size;
  float* data = nullptr;
};

}  // namespace weft::planted
