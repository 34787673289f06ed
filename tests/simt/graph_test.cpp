// Capture and graphs of the emulator: what a graph holds and repeats, and every way to spoil a capture.
#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/simt/planted.h"
#include "tests/simt/runtime_test.h"
#include "tests/simt/simt.h"

namespace weft::planted {
namespace {

constexpr int kSize = 50;

void begin(const Stream& stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  EXPECT_CUDA(cudaStreamBeginCapture(stream.handle, mode));
}
/// What cudaStreamEndCapture says; the graph is dropped.
cudaError_t end(const Stream& stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t error = cudaStreamEndCapture(stream.handle, &graph);
  EXPECT_EQ(graph != nullptr, error == cudaSuccess);
  if (graph) cudaGraphDestroy(graph);
  return error;
}

TEST(Graph, RunsItsNodesAgain) {
  for (const bool lazy : {false, true}) {
    const Mode mode(lazy);
    const Stream stream;
    const Floats x(pinned, kSize, 1.0f), y(device, kSize), z(pinned, kSize, 0.0f);
    int host_calls = 0;
    begin(stream);
    cudaStreamCaptureStatus status{};
    unsigned long long id = 0;
    EXPECT_CUDA(cudaStreamGetCaptureInfo(stream.handle, &status, &id, nullptr, nullptr, nullptr, nullptr));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    float factor = 2.0f;
    EXPECT_CUDA(cudaMemsetAsync(y.data, 0, y.bytes(), stream.handle));
    scale(x.data, y.data, kSize, factor, stream.handle);
    EXPECT_CUDA(cudaMemcpyAsync(z.data, y.data, z.bytes(), cudaMemcpyDeviceToHost, stream.handle));
    EXPECT_CUDA(cudaLaunchHostFunc(
        stream.handle, [](void* calls) { ++*static_cast<int*>(calls); }, &host_calls));
    factor = 9.0f;
    cudaGraph_t graph = nullptr;
    EXPECT_CUDA(cudaStreamEndCapture(stream.handle, &graph));
    EXPECT_EQ(z[0], 0.0f) << "a capture ran";
    size_t nodes = 0;
    EXPECT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_EQ(nodes, 4u);
    cudaGraphExec_t executable = nullptr;
    EXPECT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
    EXPECT_CUDA(cudaGraphDestroy(graph));
    EXPECT_CUDA(cudaGraphUpload(executable, stream.handle));
    for (int run = 1; run <= 3; ++run) {
      x.fill(static_cast<float>(run));
      EXPECT_CUDA(cudaGraphLaunch(executable, stream.handle));
      EXPECT_EQ(host_calls, lazy ? run - 1 : run);
      EXPECT_CUDA(cudaStreamSynchronize(stream.handle));
      EXPECT_EQ(z[49], 2.0f * static_cast<float>(run));
    }
    EXPECT_CUDA(cudaGraphExecDestroy(executable));
  }
}

TEST(Graph, ASecondStreamForksAndJoins) {
  const Stream first, second;
  const Event fork, join;
  const Floats x(pinned, kSize, 1.0f), y(pinned, kSize, 0.0f);
  for (const bool joined : {true, false}) {
    begin(first);
    scale(x.data, y.data, kSize, 2.0f, first.handle);
    EXPECT_CUDA(cudaEventRecord(fork.handle, first.handle));
    EXPECT_CUDA(cudaStreamWaitEvent(second.handle, fork.handle, 0));
    cudaStreamCaptureStatus status{};
    EXPECT_CUDA(cudaStreamIsCapturing(second.handle, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    scale(y.data, y.data, kSize, 3.0f, second.handle);
    EXPECT_CUDA(cudaEventRecord(join.handle, second.handle));
    EXPECT_EQ(cudaEventSynchronize(join.handle), cudaErrorCapturedEvent);
    if (joined) cudaStreamWaitEvent(first.handle, join.handle, 0);
    EXPECT_EQ(end(second), cudaErrorStreamCaptureUnmatched);
    EXPECT_EQ(end(first), joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    EXPECT_CUDA(cudaStreamIsCapturing(second.handle, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    EXPECT_EQ(cudaStreamWaitEvent(second.handle, join.handle, 0), cudaErrorCapturedEvent)
        << "of a capture that is over";
  }
}

TEST(Graph, WhatACaptureDoesNotBearSpoilsIt) {
  const Stream stream, other;
  const Event event;
  const Floats x(pinned, kSize, 1.0f), y(device, kSize);
  std::vector<float> pageable(kSize);
  void* memory = nullptr;
  EXPECT_CUDA(cudaEventRecord(event.handle, other.handle));
  const std::vector<std::pair<const char*, std::function<cudaError_t()>>> calls = {
      {"synchronise the stream", [&] { return cudaStreamSynchronize(stream.handle); }},
      {"query the stream", [&] { return cudaStreamQuery(stream.handle); }},
      {"query an event", [&] { return cudaEventQuery(event.handle); }},
      {"synchronise the device", [&] { return cudaDeviceSynchronize(); }},
      {"allocate", [&] { return cudaMalloc(&memory, 8); }},
      {"allocate pinned memory", [&] { return cudaMallocHost(&memory, 8); }},
      {"free", [&] { return cudaFree(y.data); }},
      {"copy and wait", [&] { return cudaMemcpy(y.data, x.data, y.bytes(), cudaMemcpyHostToDevice); }},
      {"copy from pageable memory",
       [&] { return cudaMemcpyAsync(y.data, pageable.data(), y.bytes(), cudaMemcpyHostToDevice, stream.handle); }},
      {"copy to pageable memory",
       [&] { return cudaMemcpyAsync(pageable.data(), y.data, y.bytes(), cudaMemcpyDeviceToHost, stream.handle); }},
      {"set and wait", [&] { return cudaMemset(y.data, 0, y.bytes()); }},
  };
  for (const auto& [name, call] : calls) {
    begin(stream);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported) << name;
    cudaStreamCaptureStatus status{};
    EXPECT_CUDA(cudaStreamIsCapturing(stream.handle, &status));
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated) << name;
    EXPECT_EQ(cudaMemsetAsync(y.data, 0, y.bytes(), stream.handle), cudaErrorStreamCaptureInvalidated) << name;
    EXPECT_EQ(end(stream), cudaErrorStreamCaptureInvalidated) << name;
  }
  begin(stream);
  EXPECT_EQ(cudaStreamWaitEvent(stream.handle, event.handle, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(end(stream), cudaErrorStreamCaptureInvalidated);
  EXPECT_CUDA(cudaDeviceSynchronize()) << "a capture that ended still forbids";
}

TEST(Graph, TheLegacyStreamAndCapture) {
  const Stream blocking(cudaStreamDefault), free;
  const Floats y(device, kSize);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  begin(blocking);
  EXPECT_EQ(cudaMemsetAsync(y.data, 0, 4, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(end(blocking), cudaErrorStreamCaptureInvalidated);
  begin(free);
  EXPECT_CUDA(cudaMemsetAsync(y.data, 0, 4, nullptr));
  EXPECT_EQ(end(free), cudaSuccess);
}

TEST(Graph, ModesSayWhomACaptureBinds) {
  const Stream stream;
  void* memory = nullptr;
  const auto allocate_elsewhere = [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaMalloc(&memory, 8); }).join();
    return error;
  };
  begin(stream);
  EXPECT_EQ(allocate_elsewhere(), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(end(stream), cudaErrorStreamCaptureInvalidated);
  begin(stream, cudaStreamCaptureModeThreadLocal);
  EXPECT_CUDA(allocate_elsewhere());
  EXPECT_EQ(end(stream), cudaSuccess);
  EXPECT_CUDA(cudaFree(memory));
  begin(stream, cudaStreamCaptureModeRelaxed);
  EXPECT_CUDA(cudaMalloc(&memory, 8));
  EXPECT_EQ(end(stream), cudaSuccess);
  EXPECT_CUDA(cudaFree(memory));
  begin(stream);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_CUDA(cudaMalloc(&memory, 8));
  EXPECT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  EXPECT_EQ(end(stream), cudaSuccess);
  EXPECT_CUDA(cudaFree(memory));
}

TEST(Graph, WrongUse) {
  const Stream stream, other;
  const Floats y(pinned, kSize);
  EXPECT_EQ(end(stream), cudaErrorIllegalState);
  begin(stream);
  EXPECT_EQ(cudaStreamBeginCapture(stream.handle, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  cudaError_t elsewhere = cudaSuccess;
  std::thread([&] {
    cudaGraph_t graph = nullptr;
    elsewhere = cudaStreamEndCapture(stream.handle, &graph);
  }).join();
  EXPECT_EQ(elsewhere, cudaErrorStreamCaptureWrongThread);
  launch_trap(stream.handle);  // an error shows when the graph runs
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(stream.handle, &graph));
  cudaGraphExec_t executable = nullptr;
  EXPECT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  const Mode mode(false);
  EXPECT_THROW(cudaGraphLaunch(executable, stream.handle), simt::Error);
  EXPECT_CUDA(cudaGraphExecDestroy(executable));
  EXPECT_CUDA(cudaGraphDestroy(graph));
}

}  // namespace
}  // namespace weft::planted
