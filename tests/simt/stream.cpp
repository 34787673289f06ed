// The queues. Host threads run operations one at a time in each stream; whoever waits runs what it waits for.
#include "tests/simt/stream.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <utility>

#include "tests/simt/sanitizer.h"
#include "tests/simt/simt.h"

CUstream_st::CUstream_st(bool waits_for_legacy) : blocking(waits_for_legacy) {
  if (__tsan_create_fiber) tsan = __tsan_create_fiber(0);
}
CUstream_st::~CUstream_st() {
  if (tsan) __tsan_destroy_fiber(tsan);
}

namespace simt {
namespace {

/// The steady clock by a system call: ThreadSanitizer stands in front of the library's function, and would take its
/// write to this stack, of the caller's thread, for one of the stream's.
std::chrono::steady_clock::time_point now() {
  timespec time{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(time.tv_sec) +
                                               std::chrono::nanoseconds(time.tv_nsec));
}

struct Streams {
  StreamPtr legacy = std::make_shared<CUstream_st>(false);
  std::vector<StreamPtr> created;
};
Streams& streams() {
  static Streams s;
  return s;
}

struct KernelOperation final : Operation {
  explicit KernelOperation(Kernel k) : kernel(std::move(k)) {}
  void run() override { simt::run(kernel); }
  Kernel kernel;
};

struct HostOperation final : Operation {
  explicit HostOperation(std::function<void()> f) : function(std::move(f)) {}
  void run() override { function(); }
  bool is_host_code() const override { return true; }
  std::function<void()> function;
};

struct RecordOperation final : Operation {
  void run() override {
    point->time = now();
    release(point->order);
  }
  std::shared_ptr<Point> point;
};

void acquire_points(CUstream_st& stream, const CUstream_st::Entry& entry) {
  acquire(stream.order_in);
  acquire(stream.order_out);
  for (const std::shared_ptr<Point>& point : entry.after) {
    acquire(point->whole ? point->stream->order_out : point->order);
  }
}

/// Runs and destroys the operation as the stream's own thread, or as the caller where it is host code.
std::exception_ptr execute(CUstream_st& stream, CUstream_st::Entry& entry) {
  const bool as_host = entry.operation->is_host_code();
  void* caller = !as_host && __tsan_get_current_fiber ? __tsan_get_current_fiber() : nullptr;
  if (caller) switch_tsan(stream.tsan);
  acquire_points(stream, entry);
  std::exception_ptr error;
  try {
    entry.operation->run();
  } catch (...) {
    error = std::current_exception();
  }
  entry.operation.reset();
  release(stream.order_out);
  if (caller) switch_tsan(caller);
  return error;
}

cudaError_t submit_or_throw(cudaStream_t handle, std::shared_ptr<Operation> operation) {
  Lock lock(runtime_lock());
  const StreamPtr stream = find(handle);
  if (!stream) throw Error("[simt] a launch into what is no stream");
  return submit(stream, std::move(operation), lock);
}

}  // namespace

void QuietLock::lock() {
  while (__atomic_exchange_n(&taken_, 1, __ATOMIC_ACQUIRE) != 0) usleep(20);
  set_unseen(true);
}

void QuietLock::unlock() {
  set_unseen(false);
  __atomic_store_n(&taken_, 0, __ATOMIC_RELEASE);
}

QuietLock& runtime_lock() {
  static QuietLock lock;
  return lock;
}

StreamPtr create_stream(bool blocking) {
  return streams().created.emplace_back(std::make_shared<CUstream_st>(blocking));
}

StreamPtr find(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return streams().legacy;
  for (const StreamPtr& s : streams().created) {
    if (s.get() == stream) return s;
  }
  return nullptr;
}

std::vector<StreamPtr> all_streams() {
  std::vector<StreamPtr> all = streams().created;
  all.push_back(streams().legacy);
  return all;
}

void destroy(const StreamPtr& stream, Lock& lock) {
  run_until(stream, stream->issued, lock);
  std::erase(streams().created, stream);
}

cudaError_t submit(const StreamPtr& stream, std::shared_ptr<Operation> operation, Lock& lock,
                   std::vector<std::shared_ptr<Point>> after) {
  if (stream->capture) return add_to_capture(*stream, std::move(operation));
  const auto follow = [&](const StreamPtr& other) {
    auto point = std::make_shared<Point>();
    point->stream = other;
    point->number = other->issued;
    point->whole = true;
    after.push_back(std::move(point));
  };
  const StreamPtr& legacy = streams().legacy;
  if (stream == legacy) {
    if (const cudaError_t error = refuse_implicit(); error != cudaSuccess) return error;
    for (const StreamPtr& other : streams().created) {
      if (other->blocking) follow(other);
    }
  } else if (stream->blocking) {
    follow(legacy);
  }
  release(stream->order_in);
  stream->queue.push_back({std::move(operation), std::move(after), ++stream->issued});
  if (!options().lazy_streams) run_until(stream, stream->issued, lock);
  return cudaSuccess;
}

void run_until(const StreamPtr& stream, uint64_t number, Lock& lock) {
  while (stream->done < number) {
    if (stream->busy) {
      if (stream->runner == std::this_thread::get_id()) {
        throw Error("[simt] an operation waits for the stream that it is in");
      }
      lock.unlock();
      usleep(20);
      lock.lock();
      continue;
    }
    stream->busy = true;
    stream->runner = std::this_thread::get_id();
    CUstream_st::Entry entry = std::move(stream->queue.front());
    stream->queue.pop_front();
    std::exception_ptr error;
    try {
      for (const std::shared_ptr<Point>& point : entry.after) run_until(point->stream, point->number, lock);
      lock.unlock();
      error = execute(*stream, entry);
      lock.lock();
    } catch (...) {  // in an operation that this one had to follow
      error = std::current_exception();
    }
    stream->busy = false;
    stream->done = entry.number;
    if (error) {
      acquire(stream->order_out);
      stream->queue.clear();
      stream->done = stream->issued;
      std::rethrow_exception(error);
    }
  }
}

void synchronize(const StreamPtr& stream, Lock& lock) {
  run_until(stream, stream->issued, lock);
  acquire(stream->order_out);
}

void synchronize_device(Lock& lock) {
  for (const StreamPtr& stream : all_streams()) synchronize(stream, lock);
}

std::shared_ptr<Point> record(const StreamPtr& stream, Lock& lock) {
  auto operation = std::make_shared<RecordOperation>();
  auto point = operation->point = std::make_shared<Point>();
  point->stream = stream;
  point->number = stream->issued + 1;
  submit(stream, std::move(operation), lock);
  return point;
}

void enqueue(cudaStream_t stream, Kernel kernel) {
  check(kernel);
  submit_or_throw(stream, std::make_shared<KernelOperation>(std::move(kernel)));
}

void enqueue(cudaStream_t stream, std::function<void()> operation) {
  submit_or_throw(stream, std::make_shared<HostOperation>(std::move(operation)));
}

}  // namespace simt
