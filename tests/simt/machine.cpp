// Runs the blocks of a kernel one by one, every CUDA thread a fiber that runs until it waits for others. Reported are
// barriers and warp operations that not all take part in who should, with place and thread; ThreadSanitizer is told
// what a barrier puts in order, so that it finds accesses that nothing puts in order.
#include "tests/simt/machine.h"

#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "tests/simt/sanitizer.h"
#include "tests/simt/symbols.h"

namespace simt {

Machine machine;
Addresses order_of;

std::string text(const uint3& i) {
  return "(" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}
std::string text(const Location& where) {
  const std::string_view file = where.file;
  return std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(where.line);
}
std::string text(const Thread& t) { return "thread " + text(t.index) + " of block " + text(blockIdx); }

bool same(const Location& a, const Location& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

void leave(bool for_good) {
  release(order_of.left);  // acquired after an error only
  machine.running->fiber->leave(for_good);
}

namespace {

Options initial_options() {
  Options o;
  const char* order = std::getenv("SIMT_ORDER");
  const std::string_view text = order ? order : "forward";
  if (text == "reverse") o.order = Order::reverse;
  if (text.starts_with("random")) o.order = Order::random;
  if (text.starts_with("random:")) o.seed = std::strtoull(order + 7, nullptr, 10);
  const char* streams = std::getenv("SIMT_STREAMS");
  o.lazy_streams = streams && std::string_view(streams) == "lazy";
  if (const char* bytes = std::getenv("SIMT_MEMORY")) o.memory_bytes = std::strtoull(bytes, nullptr, 10);
  return o;
}

uint64_t random_number() {  // Marsaglia, Xorshift RNGs, 2003
  uint64_t& x = machine.random;
  x ^= x << 13;
  x ^= x >> 7;
  return x ^= x << 17;
}

/// Bytes of ones, without a call that a sanitizer would take for an access.
void fill(void* begin, size_t bytes) {
  auto* p = static_cast<volatile char*>(begin);
  for (; bytes != 0 && reinterpret_cast<uintptr_t>(p) % 8 != 0; --bytes) *p++ = -1;
  for (; bytes >= 8; bytes -= 8, p += 8) *reinterpret_cast<volatile uint64_t*>(p) = ~uint64_t{0};
  for (; bytes != 0; --bytes) *p++ = -1;
}

std::string doing(const Thread& t) {
  switch (t.state) {
    case State::done:
      return "has returned";
    case State::at_barrier:
      return "waits at __syncthreads, " + text(t.where);
    case State::at_warp_op:
      return std::string("waits at ") + text(t.op) + ", " + text(t.where);
    default:
      return "runs";
  }
}

// ---- on the fibers ----
/// Puts the thread after all blocks before, which had their arrays at the same addresses.
void order_after_past() {
  Thread& self = *machine.running;
  if (!self.after_past) acquire(order_of.past);
  self.after_past = true;
}

void run_thread() {
  acquire(order_of.launch);
  if (options().ordered_blocks) order_after_past();
  try {
    machine.kernel->body(machine.kernel->arguments.get());
  } catch (const Stop& stop) {
    machine.error = stop.error;
  } catch (...) {
    machine.thrown = std::current_exception();
  }
  release(order_of.ends[machine.block % 2]);
  machine.running->state = State::done;
  --machine.alive;
  leave(true);
}

// ---- on the host ----
void start_or_resume(Thread& t) {
  machine.running = &t;
  threadIdx = t.index;
  if (t.state == State::fresh) {
    // Not the fiber it was in the last block: to ThreadSanitizer equal threads of two blocks are two threads.
    const auto number = static_cast<uint64_t>(t.warp * kWarp + t.lane);
    t.fiber = &machine.fibers[(number + machine.block) % machine.size];
    t.fiber->start(run_thread);
    t.state = State::ready;
  }
  do {
    machine.unknown_mark = nullptr;
    ++statistics().switches;
    t.fiber->resume();
    if (machine.unknown_mark) machine.unknown_mark->arrays = &arrays_beside(machine.unknown_mark);
  } while (machine.unknown_mark);
}

/// Nobody can run: says who waits for whom if that is more than a barrier for all.
std::string complaint() {
  const Thread* first = nullptr;
  for (unsigned i = 0; i < machine.size; ++i) {
    const Thread& t = machine.threads[i];
    if (t.state == State::done) continue;
    if (!first) first = &t;
    const Thread* other = &t;
    if (t.state == State::at_barrier) {
      if (first->state == State::at_barrier && t.vote == first->vote && same(t.where, first->where)) continue;
    } else {
      first = &t;
      for (unsigned l = 0; l < kWarp; ++l) {
        if (t.mask >> l & 1 && !arrived(thread_at(t.warp, l), t)) other = &thread_at(t.warp, l);
      }
    }
    return "deadlock: " + text(*first) + " " + doing(*first) + ", but thread " + text(other->index) + " " +
           doing(*other);
  }
  for (unsigned i = 0; i < machine.size; ++i) {
    const Thread& t = machine.threads[i];
    if (t.state != State::done) continue;
    return "divergent barrier: " + text(*first) + " " + doing(*first) + ", but thread " + text(t.index) +
           " has returned";
  }
  return "";
}

void open_barrier() {
  ++statistics().barriers;
  int yes = 0;
  for (unsigned i = 0; i < machine.size; ++i) yes += machine.threads[i].predicate != 0;
  for (unsigned i = 0; i < machine.size; ++i) {
    machine.threads[i].count = yes;
    machine.threads[i].state = State::ready;
  }
}

bool failed() { return !machine.error.empty() || machine.thrown; }

void run_block() {
  machine.alive = machine.size;
  for (unsigned i = 0; i < machine.size; ++i) {
    Thread& t = machine.threads[i];
    t.state = State::fresh;
    t.after_past = false;
    t.barriers = t.warp_syncs = 0;
  }
  while (machine.alive != 0) {
    bool progress = false;
    for (unsigned i = machine.size; i > 1 && options().order == Order::random; --i) {
      std::swap(machine.threads[i - 1].turn, machine.threads[random_number() % i].turn);
    }
    for (unsigned i = 0; i < machine.size; ++i) {
      Thread& t = machine.threads[machine.threads[i].turn];
      if (t.state != State::fresh && t.state != State::ready) continue;
      progress = true;
      start_or_resume(t);
      if (failed()) return;
    }
    if (progress) continue;
    machine.error = complaint();
    if (failed()) return;
    open_barrier();
  }
  acquire(order_of.ends[machine.block % 2]);
  release(order_of.past);
  const char* tail = static_cast<const char*>(machine.shared.get()) + machine.kernel->shared_bytes;
  for (size_t i = 0; i < kTail; ++i) {
    if (static_cast<const volatile char*>(tail)[i] == -1) continue;
    machine.error = "block " + text(blockIdx) + " wrote behind its " + std::to_string(machine.kernel->shared_bytes) +
                    " bytes of dynamic shared memory";
    return;
  }
}

void prepare(const Kernel& kernel) {
  const dim3& b = kernel.block;
  machine.kernel = &kernel;
  machine.size = b.x * b.y * b.z;
  if (machine.stack_bytes != options().stack_bytes) machine.fibers.clear();
  machine.stack_bytes = options().stack_bytes;
  while (machine.fibers.size() < machine.size) machine.fibers.emplace_back(machine.stack_bytes);
  if (machine.threads.size() < machine.size) machine.threads.resize(machine.size);
  for (unsigned i = 0; i < machine.size; ++i) {
    Thread& t = machine.threads[i];
    t.index = {i % b.x, i / b.x % b.y, i / (b.x * b.y)};
    t.turn = options().order == Order::reverse ? machine.size - 1 - i : i;
    t.lane = i % kWarp;
    t.warp = i / kWarp;
  }
  machine.random = options().seed * 0x9e3779b97f4a7c15u | 1;
  blockDim = b;
  gridDim = kernel.grid;
}

void run_blocks(const Kernel& kernel) {
  const uint64_t x = kernel.grid.x, y = kernel.grid.y, blocks = x * y * kernel.grid.z;
  uint64_t first = 0, step = 1;  // with no common divisor, so that every block has its turn
  if (options().order == Order::reverse) step = blocks - 1, first = blocks - 1;
  if (options().order == Order::random && blocks > 2) {
    first = random_number() % blocks;
    do step = random_number() % blocks;
    while (std::gcd(step, blocks) != 1);
  }
  for (uint64_t i = 0, block = first; i < blocks && !failed(); ++i, block = (block + step) % blocks) {
    blockIdx = {static_cast<unsigned>(block % x), static_cast<unsigned>(block / x % y),
                static_cast<unsigned>(block / (x * y))};
    fill(machine.shared.get(), kernel.shared_bytes + kTail);
    ++machine.block;
    run_block();
  }
}

}  // namespace

Options& options() {
  static Options o = initial_options();
  return o;
}
Statistics& statistics() {
  static Statistics s;
  return s;
}

void check(const Kernel& kernel) {
  const dim3 &g = kernel.grid, &b = kernel.block;
  const auto refuse = [&](const std::string& what) {
    throw Error("[simt] " + function_name(kernel.function) + ": " + what);
  };
  const uint64_t threads = uint64_t{b.x} * b.y * b.z;
  if (threads == 0 || threads > 1024 || b.x > 1024 || b.y > 1024 || b.z > 64) {
    refuse("a block has 1 to 1024 threads, at most 64 of them deep, not " + text({b.x, b.y, b.z}));
  }
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffffu || g.y > 65535 || g.z > 65535) {
    refuse("a grid has 1 to 2147483647 x 65535 x 65535 blocks, not " + text({g.x, g.y, g.z}));
  }
  if (kernel.shared_bytes > options().shared_bytes) {
    refuse("a block has at most " + std::to_string(options().shared_bytes) + " bytes of dynamic shared memory, not " +
           std::to_string(kernel.shared_bytes));
  }
}

void run(const Kernel& kernel) {
  check(kernel);
  const Lock lock(machine.one_grid);
  ++statistics().launches;
  prepare(kernel);
  void* shared = nullptr;
  if (posix_memalign(&shared, 128, kernel.shared_bytes + kTail) != 0) throw std::bad_alloc();
  machine.shared.reset(shared);
  char* tail = static_cast<char*>(shared) + kernel.shared_bytes;
  poison(tail, kTail);
  release(order_of.launch);
  run_blocks(kernel);
  unpoison(tail, kTail);
  machine.shared.reset();
  if (!failed()) return;
  acquire(order_of.left);
  machine.fibers.clear();
  const std::exception_ptr thrown = std::exchange(machine.thrown, nullptr);
  const std::string error = std::exchange(machine.error, "");
  if (thrown) std::rethrow_exception(thrown);
  throw Error("[simt] " + function_name(kernel.function) + ": " + error);
}

void* dynamic_shared() {
  order_after_past();
  return machine.shared.get();
}

void enter_shared(SharedMark& mark) {
  order_after_past();
  if (!mark.arrays) {
    machine.unknown_mark = &mark;
    leave(false);
  }
  if (mark.arrays->filled_for == machine.block) return;
  mark.arrays->filled_for = machine.block;
  for (const SharedArrays::Array& array : mark.arrays->arrays) fill(array.begin, array.bytes);
}

int sync_block(Vote vote, int predicate, const Location& where) {
  Thread& self = *machine.running;
  self.state = State::at_barrier;
  self.where = where;
  self.vote = vote;
  self.predicate = predicate;
  char* address = order_of.barrier[self.barriers++ % 2];
  release(address);
  leave(false);
  acquire(address);
  return vote == Vote::all   ? self.count == static_cast<int>(machine.size)
         : vote == Vote::any ? self.count != 0
                             : self.count;
}

void fence() {
  release(order_of.fence);
  acquire(order_of.fence);
}

void trap(const Location& where) { give_up(text(*machine.running) + " trapped, " + text(where)); }

}  // namespace simt
