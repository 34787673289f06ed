// Capture of streams into graphs, by the runtime's rules: what may be captured, what spoils a capture, and that all
// work is joined again when it ends. A graph runs its nodes in the order in which they were issued.
#include <algorithm>
#include <atomic>
#include <utility>

#include "tests/simt/stream.h"

struct CUgraph_st {
  struct Node {
    std::shared_ptr<simt::Operation> operation;
    simt::Frontier after;
  };
  std::vector<Node> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const CUgraph_st> graph;
};

namespace simt {

struct Capture {
  std::unique_ptr<CUgraph_st> graph = std::make_unique<CUgraph_st>();
  CUstream_st* origin;
  cudaStreamCaptureMode mode;
  std::thread::id thread;
  unsigned long long id;
  bool invalid = false;
};

namespace {

thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;
std::atomic<unsigned long long> captures_begun{0};

struct GraphOperation final : Operation {
  void run() override {
    for (const CUgraph_st::Node& node : graph->nodes) node.operation->run();
  }
  bool is_host_code() const override {
    return std::ranges::any_of(graph->nodes, [](const auto& node) { return node.operation->is_host_code(); });
  }
  std::shared_ptr<const CUgraph_st> graph;
};

void join(Frontier& frontier, const Frontier& other) {
  for (const size_t node : other) {
    if (std::ranges::find(frontier, node) == frontier.end()) frontier.push_back(node);
  }
}

/// Whether every node comes before the frontier's end.
bool all_joined(const CUgraph_st& graph, Frontier reached) {
  std::vector<char> seen(graph.nodes.size());
  size_t count = 0;
  while (!reached.empty()) {
    const size_t node = reached.back();
    reached.pop_back();
    if (seen[node]++) continue;
    ++count;
    reached.insert(reached.end(), graph.nodes[node].after.begin(), graph.nodes[node].after.end());
  }
  return count == graph.nodes.size();
}

}  // namespace

CaptureUse capture_use(const CUstream_st& stream) {
  return !stream.capture ? CaptureUse::none : stream.capture->invalid ? CaptureUse::invalid : CaptureUse::active;
}

cudaError_t add_to_capture(CUstream_st& stream, std::shared_ptr<Operation> operation) {
  if (stream.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  stream.capture->graph->nodes.push_back({std::move(operation), stream.frontier});
  stream.frontier = {stream.capture->graph->nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t refuse_in_capture(CUstream_st& stream) {
  if (!stream.capture) return cudaSuccess;
  const bool was = std::exchange(stream.capture->invalid, true);
  return was ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnsupported;
}

cudaError_t refuse_in_any_capture() {
  cudaError_t error = cudaSuccess;
  for (const StreamPtr& stream : all_streams()) {
    if (!stream->capture || thread_mode == cudaStreamCaptureModeRelaxed) continue;
    const Capture& c = *stream->capture;
    const bool mine = c.thread == std::this_thread::get_id() && c.mode != cudaStreamCaptureModeRelaxed;
    if (mine || (c.mode == cudaStreamCaptureModeGlobal && thread_mode == cudaStreamCaptureModeGlobal)) {
      error = cudaErrorStreamCaptureUnsupported;
      stream->capture->invalid = true;
    }
  }
  return error;
}

cudaError_t refuse_implicit() {
  cudaError_t error = cudaSuccess;
  for (const StreamPtr& stream : all_streams()) {
    if (!stream->capture || !stream->blocking) continue;
    error = cudaErrorStreamCaptureImplicit;
    stream->capture->invalid = true;
  }
  return error;
}

cudaError_t wait_in_capture(const StreamPtr& stream, const CUevent_st& event) {
  if (stream->capture && stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  const bool over = event.capture && !event.capture->graph;
  if (over && !stream->capture) return cudaErrorCapturedEvent;
  if (over || !event.capture) {  // the capture would hang on work outside of it
    stream->capture->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  if (stream->capture && stream->capture != event.capture) {
    stream->capture->invalid = event.capture->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  stream->capture = event.capture;
  join(stream->frontier, event.frontier);
  return cudaSuccess;
}

}  // namespace simt

using namespace simt;

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  if (stream == find(nullptr)) return fail(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return fail(cudaErrorIllegalState);
  stream->capture = std::make_shared<Capture>(
      Capture{.origin = stream.get(), .mode = mode, .thread = std::this_thread::get_id(), .id = ++captures_begun});
  stream->frontier.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Lock lock(runtime_lock());
  *graph = nullptr;
  const StreamPtr stream = find(handle);
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture) return fail(cudaErrorIllegalState);
  if (capture->origin != stream.get()) return fail(cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != std::this_thread::get_id()) {
    return fail(cudaErrorStreamCaptureWrongThread);
  }
  std::unique_ptr<CUgraph_st> captured = std::move(capture->graph);  // an event of this capture sees that it is over
  const bool joined = all_joined(*captured, stream->frontier);
  for (const StreamPtr& other : all_streams()) {
    if (other->capture != capture) continue;
    other->capture = nullptr;
    other->frontier.clear();
  }
  if (capture->invalid) return fail(cudaErrorStreamCaptureInvalidated);
  if (!joined) return fail(cudaErrorStreamCaptureUnjoined);
  *graph = captured.release();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream) return fail(cudaErrorInvalidResourceHandle);
  const CaptureUse use = capture_use(*stream);
  *status = use == CaptureUse::none     ? cudaStreamCaptureStatusNone
            : use == CaptureUse::active ? cudaStreamCaptureStatusActive
                                        : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  if (dependencies || edges) return fail(cudaErrorNotSupported);
  if (const cudaError_t error = cudaStreamIsCapturing(handle, status); error != cudaSuccess) return error;
  const Lock lock(runtime_lock());
  const std::shared_ptr<Capture>& capture = find(handle)->capture;
  if (id && capture) *id = capture->id;
  if (graph) *graph = capture ? capture->graph.get() : nullptr;
  if (count) *count = find(handle)->frontier.size();
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  if (!graph || !count) return fail(cudaErrorInvalidValue);
  if (nodes) return fail(cudaErrorNotSupported);
  *count = graph->nodes.size();
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  if (!executable || !graph) return fail(cudaErrorInvalidValue);
  *executable = new CUgraphExec_st{std::make_shared<CUgraph_st>(*graph)};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  const Lock lock(runtime_lock());
  return executable && find(handle) ? cudaSuccess : fail(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!executable || !stream) return fail(cudaErrorInvalidValue);
  auto operation = std::make_shared<GraphOperation>();
  operation->graph = executable->graph;
  return fail(submit(stream, std::move(operation), lock));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  if (!executable) return fail(cudaErrorInvalidValue);
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  if (!graph) return fail(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}
