// Streams of the emulator: what runs when, in eager and in lazy mode, and that work which nothing puts in order is
// found.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "tests/simt/planted.h"
#include "tests/simt/runtime_test.h"
#include "tests/simt/sanitizer_test.h"
#include "tests/simt/simt.h"

namespace weft::planted {
namespace {

constexpr int kSize = 100;

#define SKIP_WHERE_RACES_ARE_FOUND() \
  if (kThreadSanitizer) GTEST_SKIP() << "skipped: looks at memory that it has not waited for, without ThreadSanitizer"

TEST(Stream, EagerRunsAtOnce) {
  const Mode mode(false);
  const Stream stream;
  const Floats x(pinned, kSize, 1.0f), y(pinned, kSize, 0.0f);
  scale(x.data, y.data, kSize, 2.0f, stream.handle);
  EXPECT_CUDA(cudaStreamQuery(stream.handle));
  EXPECT_EQ(y[99], 2.0f);
}

TEST(Stream, LazyRunsWhenSomethingWaits) {
  SKIP_WHERE_RACES_ARE_FOUND();
  const Mode mode(true);
  const Stream stream;
  const Floats x(pinned, kSize, 1.0f), y(pinned, kSize, 0.0f);
  for (const auto& wait :
       {+[](cudaStream_t s) { return cudaStreamSynchronize(s); }, +[](cudaStream_t) { return cudaDeviceSynchronize(); },
        +[](cudaStream_t s) {
          return cudaStreamQuery(s) == cudaErrorNotReady ? cudaStreamQuery(s) : cudaErrorUnknown;
        }}) {
    y.fill(0.0f);
    scale(x.data, y.data, kSize, 2.0f, stream.handle);
    EXPECT_EQ(y[99], 0.0f);
    EXPECT_CUDA(wait(stream.handle));
    EXPECT_EQ(y[99], 2.0f);
  }
}

TEST(Stream, LazyCopiesReadPinnedMemoryLateAndPageableMemoryAtTheCall) {
  SKIP_WHERE_RACES_ARE_FOUND();
  const Mode mode(true);
  const Stream stream;
  const Floats y(device, kSize), x(pinned, kSize, 1.0f);
  std::vector<float> pageable(kSize, 1.0f), result(kSize);
  EXPECT_CUDA(cudaMemcpyAsync(y.data, pageable.data(), y.bytes(), cudaMemcpyHostToDevice, stream.handle));
  std::fill(pageable.begin(), pageable.end(), 5.0f);
  EXPECT_CUDA(cudaMemcpyAsync(result.data(), y.data, y.bytes(), cudaMemcpyDeviceToHost, stream.handle));
  EXPECT_EQ(result[99], 1.0f);
  EXPECT_CUDA(cudaMemcpyAsync(y.data, x.data, y.bytes(), cudaMemcpyHostToDevice, stream.handle));
  x.fill(7.0f);  // too early: a mistake, and it shows
  EXPECT_CUDA(cudaMemcpyAsync(result.data(), y.data, y.bytes(), cudaMemcpyDeviceToHost, stream.handle));
  EXPECT_EQ(result[99], 7.0f);
}

TEST(Stream, EventsOrderStreams) {
  SKIP_WHERE_RACES_ARE_FOUND();
  const Mode mode(true);
  const Stream first, second;
  const Floats x(pinned, kSize, 1.0f), y(pinned, kSize, 0.0f), z(pinned, kSize, 0.0f), other(pinned, kSize, 0.0f);
  const Event event, end;
  EXPECT_CUDA(cudaEventQuery(event.handle)) << "never recorded";
  scale(x.data, y.data, kSize, 2.0f, first.handle);
  EXPECT_CUDA(cudaEventRecord(event.handle, first.handle));
  scale(x.data, other.data, kSize, 9.0f, first.handle);
  EXPECT_CUDA(cudaStreamWaitEvent(second.handle, event.handle, 0));
  scale(y.data, z.data, kSize, 3.0f, second.handle);
  EXPECT_CUDA(cudaEventRecord(end.handle, second.handle));
  EXPECT_EQ(cudaEventQuery(event.handle), cudaErrorNotReady);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event.handle, end.handle), cudaErrorNotReady);
  EXPECT_CUDA(cudaEventSynchronize(end.handle));
  EXPECT_EQ(z[99], 6.0f);
  EXPECT_EQ(other[99], 0.0f) << "nobody waited for what comes behind the event";
  EXPECT_CUDA(cudaEventElapsedTime(&milliseconds, event.handle, end.handle));
  EXPECT_GE(milliseconds, 0.0f);
  EXPECT_CUDA(cudaStreamSynchronize(first.handle));
  EXPECT_EQ(other[99], 9.0f);
}

TEST(Stream, WithoutTheEventTheSecondStreamSeesOldNumbers) {
  SKIP_WHERE_RACES_ARE_FOUND();
  const Mode mode(true);
  const Stream first, second;
  const Floats x(pinned, kSize, 1.0f), y(pinned, kSize, 0.0f), z(pinned, kSize, 5.0f);
  scale(x.data, y.data, kSize, 2.0f, first.handle);
  scale(y.data, z.data, kSize, 3.0f, second.handle);
  EXPECT_CUDA(cudaStreamSynchronize(second.handle));
  EXPECT_EQ(z[99], 0.0f);
  EXPECT_CUDA(cudaDeviceSynchronize());
}

TEST(Stream, OnlyBlockingStreamsFollowTheLegacyStream) {
  SKIP_WHERE_RACES_ARE_FOUND();
  const Mode mode(true);
  const Stream blocking(cudaStreamDefault), free(cudaStreamNonBlocking);
  const Floats x(pinned, kSize, 1.0f), y(device, kSize, 0.0f);
  float result = 0;
  for (const auto& [stream, expected] : {std::pair(&blocking, 2.0f), std::pair(&free, 0.0f)}) {
    EXPECT_CUDA(cudaMemset(y.data, 0, y.bytes()));
    EXPECT_CUDA(cudaDeviceSynchronize());
    scale(x.data, y.data, kSize, 2.0f, stream->handle);
    EXPECT_CUDA(cudaMemcpy(&result, y.data, sizeof(float), cudaMemcpyDeviceToHost));
    EXPECT_EQ(result, expected);
  }
}

TEST(Stream, HostCodeRunsInOrder) {
  for (const bool lazy : {false, true}) {
    const Mode mode(lazy);
    const Stream stream;
    const Floats x(pinned, kSize, 1.0f), y(pinned, kSize, 0.0f);
    float seen[2] = {};
    simt::enqueue(stream.handle, [&] { x[0] = 4.0f; });
    scale(x.data, y.data, kSize, 2.0f, stream.handle);
    simt::enqueue(stream.handle, [&] { seen[0] = y[0]; });
    EXPECT_CUDA(cudaLaunchHostFunc(
        stream.handle, [](void* p) { *static_cast<float*>(p) = 3.0f; }, &seen[1]));
    EXPECT_EQ(seen[1] == 0.0f, lazy);
    EXPECT_CUDA(cudaStreamSynchronize(stream.handle));
    EXPECT_EQ(seen[0], 8.0f);
    EXPECT_EQ(seen[1], 3.0f);
  }
}

TEST(Stream, ErrorsReachTheCallThatWaits) {
  const Floats y(pinned, 64, 0.0f);
  {
    const Mode mode(false);
    EXPECT_THROW(divergent_barrier(y.data, false), simt::Error);
  }
  const Mode mode(true);
  const Stream stream, second;
  const Event event;
  for (int i = 0; i < 2; ++i) {
    EXPECT_NO_THROW(launch_trap(stream.handle));
    EXPECT_CUDA(cudaEventRecord(event.handle, stream.handle));
    EXPECT_CUDA(cudaStreamWaitEvent(second.handle, event.handle, 0));
    EXPECT_THROW(cudaStreamSynchronize(i == 0 ? stream.handle : second.handle), simt::Error);
    EXPECT_CUDA(cudaDeviceSynchronize());
  }
  simt::enqueue(stream.handle, [&] { cudaStreamSynchronize(stream.handle); });
  EXPECT_THROW(cudaStreamSynchronize(stream.handle), simt::Error);
}

TEST(Stream, ManyThreadsLaunchAtOnce) {
  for (const bool lazy : {false, true}) {
    const Mode mode(lazy);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        const Stream stream;
        const Floats x(pinned, kSize, 1.0f), y(device, kSize), z(pinned, kSize);
        for (int i = 1; i < 5; ++i) {
          scale(x.data, y.data, kSize, static_cast<float>(t), stream.handle);
          scale(y.data, z.data, kSize, static_cast<float>(i), stream.handle);
          EXPECT_CUDA(cudaStreamSynchronize(stream.handle));
          EXPECT_EQ(z[99], static_cast<float>(t * i));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// ---- what nothing puts in order ----
void read_before_synchronise(bool fixed) {
  const Mode mode(false);
  const Stream stream;
  const Floats x(pinned, kSize, 1.0f), y(pinned, kSize, 0.0f);
  scale(x.data, y.data, kSize, 2.0f, stream.handle);
  if (fixed) cudaStreamSynchronize(stream.handle);
  EXPECT_EQ(y[3], 2.0f);
  cudaStreamSynchronize(stream.handle);
}
TEST(Stream, RaceOfHostAndStream) { EXPECT_THREAD_SANITIZER(read_before_synchronise, "data race"); }

void change_before_copied(bool fixed) {
  const Mode mode(false);
  const Stream stream;
  const Floats x(pinned, kSize, 1.0f), y(device, kSize);
  const Event event;
  cudaMemcpyAsync(y.data, x.data, y.bytes(), cudaMemcpyHostToDevice, stream.handle);
  cudaEventRecord(event.handle, stream.handle);
  if (fixed) cudaEventSynchronize(event.handle);
  x.fill(2.0f);
  cudaStreamSynchronize(stream.handle);
}
TEST(Stream, RaceOfHostAndCopy) { EXPECT_THREAD_SANITIZER(change_before_copied, "data race"); }

void second_stream_without_event(bool fixed) {
  const Mode mode(false);
  const Stream first, second;
  const Event event;
  const Floats x(pinned, kSize, 1.0f), y(device, kSize);
  scale(x.data, y.data, kSize, 2.0f, first.handle);
  cudaEventRecord(event.handle, first.handle);
  if (fixed) cudaStreamWaitEvent(second.handle, event.handle, 0);
  scale(y.data, y.data, kSize, 2.0f, second.handle);
  cudaDeviceSynchronize();
}
TEST(Stream, RaceOfTwoStreams) { EXPECT_THREAD_SANITIZER(second_stream_without_event, "data race"); }

void pinned_memory_freed_early(bool fixed) {
  const Mode mode(true);
  const Stream stream;
  const Floats y(device, kSize);
  {
    const Floats x(pinned, kSize, 1.0f);
    cudaMemcpyAsync(y.data, x.data, y.bytes(), cudaMemcpyHostToDevice, stream.handle);
    if (fixed) cudaStreamSynchronize(stream.handle);
  }
  cudaStreamSynchronize(stream.handle);
}
TEST(Stream, PinnedMemoryFreedEarly) { EXPECT_ADDRESS_SANITIZER(pinned_memory_freed_early, "heap-use-after-free"); }

}  // namespace
}  // namespace weft::planted
