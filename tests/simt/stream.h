// Streams, events and graphs behind the runtime API. A stream is a queue of operations that host threads run for it: at
// once, or when something waits for them. To ThreadSanitizer each stream is a thread of its own, put in order by
// nothing but what the program waits for.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace simt {

/// A lock in which ThreadSanitizer sees no order between those who take it, and no access while it is held: for the
/// emulator's own data. It is not held while the program's code runs or its memory is touched.
class QuietLock {
 public:
  void lock();
  void unlock();

 private:
  int taken_ = 0;
};
using Lock = std::unique_lock<QuietLock>;

class Operation {
 public:
  virtual ~Operation() = default;
  virtual void run() = 0;
  /// Whether it is code of the program, which runs on the stack of the host thread and hence as that thread.
  virtual bool is_host_code() const { return false; }
};

struct Capture;
using Frontier = std::vector<size_t>;  ///< nodes of a graph that whatever comes next must follow

/// A place in a stream: reached when as many operations are done.
struct Point {
  std::shared_ptr<CUstream_st> stream;
  uint64_t number = 0;
  bool whole = false;  ///< stands for all that the stream had, not for a recorded event
  bool asked = false;  ///< by a query that said "not yet"
  std::chrono::steady_clock::time_point time;
  char order[8] = {};
};

}  // namespace simt

struct CUstream_st {
  struct Entry {
    std::shared_ptr<simt::Operation> operation;
    std::vector<std::shared_ptr<simt::Point>> after;
    uint64_t number;
  };
  explicit CUstream_st(bool waits_for_legacy);
  ~CUstream_st();

  bool blocking;  ///< in order with the legacy stream
  std::deque<Entry> queue;
  uint64_t issued = 0, done = 0;
  bool busy = false;
  std::thread::id runner;  ///< of the operation that runs now
  uint64_t asked = 0;      ///< what the last query that said "not yet" was about
  std::shared_ptr<simt::Capture> capture;
  simt::Frontier frontier;
  void* tsan = nullptr;
  char order_in[8] = {}, order_out[8] = {};
};

struct CUevent_st {
  bool timed;
  std::shared_ptr<simt::Point> point;  ///< none before the first record
  std::shared_ptr<simt::Capture> capture;
  simt::Frontier frontier;
};

namespace simt {

/// Guards streams, events and captures.
QuietLock& runtime_lock();
using StreamPtr = std::shared_ptr<CUstream_st>;
StreamPtr create_stream(bool blocking);
/// None for a handle that is no stream's.
StreamPtr find(cudaStream_t stream);
void destroy(const StreamPtr& stream, Lock& lock);
std::vector<StreamPtr> all_streams();

/// Queues or captures; runs at once where streams are not lazy.
cudaError_t submit(const StreamPtr& stream, std::shared_ptr<Operation> operation, Lock& lock,
                   std::vector<std::shared_ptr<Point>> after = {});
/// Runs the stream until `number` operations are done. An error found in one is thrown, and the rest is dropped.
void run_until(const StreamPtr& stream, uint64_t number, Lock& lock);
/// Runs all that the stream has, and orders the caller after it.
void synchronize(const StreamPtr& stream, Lock& lock);
void synchronize_device(Lock& lock);
/// The place behind all that the stream has now.
std::shared_ptr<Point> record(const StreamPtr& stream, Lock& lock);

// ---- capture ----
enum class CaptureUse { none, active, invalid };
CaptureUse capture_use(const CUstream_st& stream);
cudaError_t add_to_capture(CUstream_st& stream, std::shared_ptr<Operation> operation);
/// For calls that a capture forbids: spoils the capture of the stream if there is one.
cudaError_t refuse_in_capture(CUstream_st& stream);
/// For calls that no stream's capture bears, as allocation.
cudaError_t refuse_in_any_capture();
/// Work on the legacy stream while one that waits for it is captured.
cudaError_t refuse_implicit();
/// What cudaStreamWaitEvent does for a captured event or on a captured stream.
cudaError_t wait_in_capture(const StreamPtr& stream, const CUevent_st& event);

cudaError_t fail(cudaError_t error);  ///< keeps the error for cudaGetLastError

}  // namespace simt
