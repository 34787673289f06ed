// The part of the CUDA runtime API that host code calls, over the host's memory and the streams of stream.cpp. Graphs
// are in graph.cpp, allocation in memory.cpp. Unlike the real one these functions let simt::Error and the exceptions of
// host code pass through: a test is to see what a kernel did, not that "an unspecified launch failure" happened.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "tests/simt/memory.h"
#include "tests/simt/sanitizer.h"
#include "tests/simt/simt.h"
#include "tests/simt/stream.h"

namespace simt {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

constexpr std::pair<cudaError_t, std::pair<const char*, const char*>> kErrors[] = {
    {cudaSuccess, {"cudaSuccess", "no error"}},
    {cudaErrorInvalidValue, {"cudaErrorInvalidValue", "invalid argument"}},
    {cudaErrorMemoryAllocation, {"cudaErrorMemoryAllocation", "out of memory"}},
    {cudaErrorInvalidMemcpyDirection, {"cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"}},
    {cudaErrorInvalidDevice, {"cudaErrorInvalidDevice", "invalid device ordinal"}},
    {cudaErrorInvalidResourceHandle, {"cudaErrorInvalidResourceHandle", "invalid resource handle"}},
    {cudaErrorIllegalState, {"cudaErrorIllegalState", "the operation cannot be performed in the present state"}},
    {cudaErrorNotReady, {"cudaErrorNotReady", "device not ready"}},
    {cudaErrorNotSupported, {"cudaErrorNotSupported", "operation not supported"}},
    {cudaErrorStreamCaptureUnsupported,
     {"cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"}},
    {cudaErrorStreamCaptureInvalidated,
     {"cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"}},
    {cudaErrorStreamCaptureMerge,
     {"cudaErrorStreamCaptureMerge", "operation would result in a merge of separate capture sequences"}},
    {cudaErrorStreamCaptureUnmatched, {"cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream"}},
    {cudaErrorStreamCaptureUnjoined, {"cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"}},
    {cudaErrorStreamCaptureIsolation,
     {"cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"}},
    {cudaErrorStreamCaptureImplicit,
     {"cudaErrorStreamCaptureImplicit",
      "operation would make the legacy stream depend on a capturing blocking stream"}},
    {cudaErrorStreamCaptureWrongThread,
     {"cudaErrorStreamCaptureWrongThread", "attempt to terminate a thread-local capture sequence from another thread"}},
    {cudaErrorCapturedEvent,
     {"cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"}},
};

std::pair<const char*, const char*> words(cudaError_t error) {
  for (const auto& [code, pair] : kErrors) {
    if (code == error) return pair;
  }
  return {"cudaErrorUnknown", "unknown error"};
}

/// Rows of bytes from here to there.
struct CopyOperation final : Operation {
  void run() override {
    for (size_t row = 0; row < height; ++row) {
      std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch, width);
    }
  }
  void* to;
  size_t to_pitch;
  const void* from;
  size_t from_pitch, width, height;
  std::unique_ptr<char[]> staged;
};

struct FillOperation final : Operation {
  void run() override { std::memset(to, value, bytes); }
  void* to;
  int value;
  size_t bytes;
};

struct WaitOperation final : Operation {
  void run() override {}
};

bool allows(cudaMemcpyKind kind, Place to, Place from) {
  const auto host = [](Place p) { return p != Place::device; };
  const auto device = [](Place p) { return p != Place::pageable; };
  switch (kind) {
    case cudaMemcpyHostToHost:
      return host(to) && host(from);
    case cudaMemcpyHostToDevice:
      return device(to) && host(from);
    case cudaMemcpyDeviceToHost:
      return host(to) && device(from);
    case cudaMemcpyDeviceToDevice:
      return device(to) && device(from);
    default:
      return true;
  }
}

/// Pageable memory is read at the call, into a buffer, and written before the call returns; other memory when the copy
/// runs.
cudaError_t copy(CopyOperation arguments, cudaMemcpyKind kind, cudaStream_t handle, bool blocks) {
  const Place to = place_of(arguments.to), from = place_of(arguments.from);
  if (!allows(kind, to, from)) return cudaErrorInvalidMemcpyDirection;
  if (arguments.width == 0 || arguments.height == 0) return cudaSuccess;
  if (arguments.width > arguments.to_pitch || arguments.width > arguments.from_pitch) return cudaErrorInvalidValue;
  const size_t last_row = arguments.height - 1;
  if (!fits(arguments.to, last_row * arguments.to_pitch + arguments.width) ||
      !fits(arguments.from, last_row * arguments.from_pitch + arguments.width)) {
    return cudaErrorInvalidValue;
  }
  if (from == Place::pageable && to != Place::pageable) {
    arguments.staged = std::make_unique_for_overwrite<char[]>(arguments.width * arguments.height);
    const auto* source = static_cast<const char*>(arguments.from);
    for (size_t row = 0; row < arguments.height; ++row) {
      std::memcpy(&arguments.staged[row * arguments.width], source + row * arguments.from_pitch, arguments.width);
    }
    arguments.from = arguments.staged.get();
    arguments.from_pitch = arguments.width;
  }
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (blocks) {
    if (const cudaError_t error = refuse_in_any_capture(); error != cudaSuccess) return error;
  }
  if (to == Place::pageable || from == Place::pageable) {
    if (const cudaError_t error = refuse_in_capture(*stream); error != cudaSuccess) return error;
  }
  const bool on_device = to == Place::device && from == Place::device;
  const cudaError_t error = submit(stream, std::make_shared<CopyOperation>(std::move(arguments)), lock);
  if (error == cudaSuccess && (to == Place::pageable || (blocks && !on_device))) synchronize(stream, lock);
  return error;
}

cudaError_t set(void* to, int value, size_t bytes, cudaStream_t handle, bool blocks) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (blocks) {
    if (const cudaError_t error = refuse_in_any_capture(); error != cudaSuccess) return error;
  }
  const Place place = place_of(to);
  if (bytes == 0) return cudaSuccess;
  if (place == Place::pageable || !fits(to, bytes)) return cudaErrorInvalidValue;
  auto operation = std::make_shared<FillOperation>();
  operation->to = to;
  operation->value = value;
  operation->bytes = bytes;
  const cudaError_t error = submit(stream, std::move(operation), lock);
  if (error == cudaSuccess && blocks && place == Place::pinned) synchronize(stream, lock);
  return error;
}

CopyOperation rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height) {
  CopyOperation c;
  c.to = to;
  c.to_pitch = to_pitch;
  c.from = from;
  c.from_pitch = from_pitch;
  c.width = width;
  c.height = height;
  return c;
}

/// One no at least before the work runs, as a program must expect.
cudaError_t query(const StreamPtr& stream, uint64_t number, bool asked_before, Lock& lock) {
  if (stream->done < number && !asked_before) return cudaErrorNotReady;
  run_until(stream, number, lock);
  return cudaSuccess;
}

cudaError_t create_event(cudaEvent_t* event, unsigned flags) {
  if (!event) return cudaErrorInvalidValue;
  *event = new CUevent_st{.timed = (flags & cudaEventDisableTiming) == 0, .point = {}, .capture = {}, .frontier = {}};
  return cudaSuccess;
}

}  // namespace

cudaError_t fail(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace simt

using namespace simt;

// ---- errors and versions ----
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorName(cudaError_t error) { return words(error).first; }
const char* cudaGetErrorString(cudaError_t error) { return words(error).second; }

// ---- copies ----
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return fail(copy(rows(to, bytes, from, bytes, bytes, 1), kind, nullptr, true));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return fail(copy(rows(to, bytes, from, bytes, bytes, 1), kind, stream, false));
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
  return fail(copy(rows(to, to_pitch, from, from_pitch, width, height), kind, nullptr, true));
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return fail(copy(rows(to, to_pitch, from, from_pitch, width, height), kind, stream, false));
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) { return fail(set(to, value, bytes, nullptr, true)); }
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return fail(set(to, value, bytes, stream, false));
}

// ---- streams ----
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (!stream || flags > cudaStreamNonBlocking) return fail(cudaErrorInvalidValue);
  const Lock lock(runtime_lock());
  *stream = create_stream(flags != cudaStreamNonBlocking).get();
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream || stream == find(nullptr)) return fail(cudaErrorInvalidResourceHandle);
  const cudaError_t error = refuse_in_capture(*stream);
  destroy(stream, lock);
  return fail(error);
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = refuse_in_capture(*stream); error != cudaSuccess) return fail(error);
  synchronize(stream, lock);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = refuse_in_capture(*stream); error != cudaSuccess) return fail(error);
  const uint64_t asked = std::exchange(stream->asked, stream->issued);
  const cudaError_t answer = query(stream, stream->issued, asked == stream->issued, lock);
  if (answer == cudaSuccess) acquire(stream->order_out);
  return answer;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream || !event) return fail(cudaErrorInvalidResourceHandle);
  if (stream->capture || event->capture) return fail(wait_in_capture(stream, *event));
  if (!event->point) return cudaSuccess;
  return fail(submit(stream, std::make_shared<WaitOperation>(), lock, {event->point}));
}
cudaError_t cudaDeviceSynchronize() {
  Lock lock(runtime_lock());
  if (const cudaError_t error = refuse_in_any_capture(); error != cudaSuccess) return fail(error);
  synchronize_device(lock);
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  if (!function) return fail(cudaErrorInvalidValue);
  enqueue(stream, [function, data] { function(data); });
  return cudaSuccess;
}

// ---- events ----
cudaError_t cudaEventCreate(cudaEvent_t* event) { return fail(create_event(event, cudaEventDefault)); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) { return fail(create_event(event, flags)); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!event) return fail(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream || !event) return fail(cudaErrorInvalidResourceHandle);
  if (capture_use(*stream) == CaptureUse::invalid) return fail(cudaErrorStreamCaptureInvalidated);
  event->capture = stream->capture;
  event->frontier = stream->frontier;
  event->point = stream->capture ? nullptr : record(stream, lock);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Lock lock(runtime_lock());
  if (!event) return fail(cudaErrorInvalidResourceHandle);
  if (event->capture) return fail(cudaErrorCapturedEvent);
  const std::shared_ptr<Point> point = event->point;
  if (!point) return cudaSuccess;
  run_until(point->stream, point->number, lock);
  acquire(point->order);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  Lock lock(runtime_lock());
  if (!event) return fail(cudaErrorInvalidResourceHandle);
  if (event->capture) return fail(cudaErrorCapturedEvent);
  if (const cudaError_t error = refuse_in_any_capture(); error != cudaSuccess) return fail(error);
  const std::shared_ptr<Point> point = event->point;
  if (!point) return cudaSuccess;
  const cudaError_t answer = query(point->stream, point->number, std::exchange(point->asked, true), lock);
  if (answer == cudaSuccess) acquire(point->order);
  return answer;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock(runtime_lock());
  if (!start || !end || !start->timed || !end->timed || !start->point || !end->point) {
    return fail(cudaErrorInvalidResourceHandle);
  }
  for (const cudaEvent_t event : {start, end}) {
    if (event->point->stream->done < event->point->number) return cudaErrorNotReady;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->point->time - start->point->time).count();
  return cudaSuccess;
}
