// The runtime of CUDA devices behind tensor/backend.h: memory, streams, events, graphs, faults.
#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>

#include "tensor/backend.h"
#include "tensor/cuda/fault.h"
#include "tensor/cuda/per_device.h"

namespace weft {
namespace cuda {

namespace {

cudaStream_t to_stream(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t to_event(void* event) { return static_cast<cudaEvent_t>(event); }

int device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    (void)cudaGetLastError();
    int needed = 0;
    CUDA_CHECK(cudaRuntimeGetVersion(&needed));
    throw Error(fmt::format("the NVIDIA driver is older than CUDA {}.{} wants, or is not running", needed / 1000,
                            needed % 1000 / 10));
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) {
    (void)cudaGetLastError();
    throw Error("the driver is there, but finds no GPU (CUDA_VISIBLE_DEVICES can hide one)");
  }
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    throw Error(fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)));
  }
  return count;
}

std::string device_name(int device) {
  cudaDeviceProp properties{};
  CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

void set_device(int device) { CUDA_CHECK(cudaSetDevice(device)); }

void memory(int64_t& free, int64_t& total) {
  size_t f = 0, t = 0;
  CUDA_CHECK(cudaMemGetInfo(&f, &t));
  free = static_cast<int64_t>(f);
  total = static_cast<int64_t>(t);
}

/// Null where there is no room, which is for the allocator to tell.
void* or_null(cudaError_t status, void* block, const char* call) {
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check(status, call);
  return block;
}

void* allocate(int64_t bytes) {
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, static_cast<size_t>(bytes));
  return or_null(status, block, "cudaMalloc");
}
/// For what is given back: after a fault that lasts, every call reports it again, and who caused it knows.
void ignore(cudaError_t status) noexcept {
  if (status != cudaSuccess) (void)cudaGetLastError();
}

void release(void* block) noexcept { ignore(cudaFree(block)); }

void* allocate_host(int64_t bytes) {
  void* block = nullptr;
  const cudaError_t status = cudaHostAlloc(&block, static_cast<size_t>(bytes), cudaHostAllocDefault);
  return or_null(status, block, "cudaHostAlloc");
}
void release_host(void* block) noexcept { ignore(cudaFreeHost(block)); }

void* create_stream() {
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}
void destroy_stream(void* stream) noexcept { ignore(cudaStreamDestroy(to_stream(stream))); }

struct FaultRecord {
  std::once_flag made;
  Fault *host = nullptr, *device = nullptr;
};

FaultRecord& record() {
  auto& r = state_of_current_device<FaultRecord>();
  std::call_once(r.made, [&] {
    void *host = nullptr, *device = nullptr;
    CUDA_CHECK(cudaHostAlloc(&host, sizeof(Fault), cudaHostAllocMapped));
    CUDA_CHECK(cudaHostGetDevicePointer(&device, host, 0));
    r.host = new (host) Fault{};
    r.device = static_cast<Fault*>(device);
  });
  return r;
}

/// Host threads that wait at once do not throw the same fault twice.
void throw_fault() {
  static std::mutex mutex;
  Fault found{};
  {
    std::lock_guard lock(mutex);
    Fault& fault = *record().host;
    std::atomic_ref<int32_t> state(fault.state);
    if (state.load() != Fault::complete) return;
    found = fault;
    state.store(Fault::none);
  }
  fail(found.op, fmt::format("{} {} at position {} is outside of {} [0, {})", found.what, found.value, found.position,
                             found.range, found.size));
}

void synchronize(void* stream) {
  CUDA_CHECK(cudaStreamSynchronize(to_stream(stream)));
  throw_fault();
}
void wait(void* stream) noexcept { ignore(cudaStreamSynchronize(to_stream(stream))); }

void copy(void* to, const void* from, int64_t bytes, void* stream) {
  if (bytes == 0) return;
  CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, to_stream(stream)));
}
void set_bytes(void* to, int value, int64_t bytes, void* stream) {
  if (bytes == 0) return;
  CUDA_CHECK(cudaMemsetAsync(to, value, static_cast<size_t>(bytes), to_stream(stream)));
}

void* create_event() {
  cudaEvent_t event = nullptr;
  CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault));
  return event;
}
void destroy_event(void* event) noexcept { ignore(cudaEventDestroy(to_event(event))); }
void record_event(void* event, void* stream) { CUDA_CHECK(cudaEventRecord(to_event(event), to_stream(stream))); }
void wait_event(void* stream, void* event) { CUDA_CHECK(cudaStreamWaitEvent(to_stream(stream), to_event(event), 0)); }
void synchronize_event(void* event) { CUDA_CHECK(cudaEventSynchronize(to_event(event))); }

// Other threads may allocate meanwhile, and so may this one: blocks of the capturing stream are its own.
void begin_capture(void* stream) {
  CUDA_CHECK(cudaStreamBeginCapture(to_stream(stream), cudaStreamCaptureModeRelaxed));
}
void* end_capture(void* stream) {
  cudaGraph_t graph = nullptr;
  CUDA_CHECK(cudaStreamEndCapture(to_stream(stream), &graph));
  cudaGraphExec_t ready = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&ready, graph, 0);
  CUDA_CHECK(cudaGraphDestroy(graph));
  check(status, "cudaGraphInstantiate");
  return ready;
}
void abandon_capture(void* stream) noexcept {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(to_stream(stream), &graph) == cudaSuccess && graph) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
}
void launch_graph(void* graph, void* stream) {
  CUDA_CHECK(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), to_stream(stream)));
}
void destroy_graph(void* graph) noexcept { ignore(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph))); }

}  // namespace

Fault* fault_record() { return record().device; }

}  // namespace cuda

namespace {

const Backend kBackend{
    .table_bytes = sizeof(Backend),
    .kernels =
        {
#define WEFT_KERNEL(name, ...) .name = &WEFT_GPU::name,
#include "tensor/kernels.def"
#undef WEFT_KERNEL
        },
    .device_count = &cuda::device_count,
    .device_name = &cuda::device_name,
    .set_device = &cuda::set_device,
    .memory = &cuda::memory,
    .allocate = &cuda::allocate,
    .release = &cuda::release,
    .allocate_host = &cuda::allocate_host,
    .release_host = &cuda::release_host,
    .create_stream = &cuda::create_stream,
    .destroy_stream = &cuda::destroy_stream,
    .synchronize = &cuda::synchronize,
    .wait = &cuda::wait,
    .copy = &cuda::copy,
    .set_bytes = &cuda::set_bytes,
    .create_event = &cuda::create_event,
    .destroy_event = &cuda::destroy_event,
    .record_event = &cuda::record_event,
    .wait_event = &cuda::wait_event,
    .synchronize_event = &cuda::synchronize_event,
    .begin_capture = &cuda::begin_capture,
    .end_capture = &cuda::end_capture,
    .abandon_capture = &cuda::abandon_capture,
    .launch_graph = &cuda::launch_graph,
    .destroy_graph = &cuda::destroy_graph,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Backend* weft_backend() { return &kBackend; }

}  // namespace weft
