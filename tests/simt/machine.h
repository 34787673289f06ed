// The state of the emulator's one grid at a time, shared by machine.cpp and warp.cpp.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <string>

#include "tests/simt/fiber.h"
#include "tests/simt/simt.h"
#include "tests/simt/stream.h"

namespace simt {

constexpr unsigned kWarp = 32;
constexpr size_t kTail = 64;  // bytes behind the dynamic shared memory that nobody may write

enum class State : uint8_t { fresh, ready, at_barrier, at_warp_op, done };

struct Thread {
  State state = State::fresh;
  uint3 index{};
  unsigned turn = 0;  ///< the number of the thread that runs when it is this one's turn
  unsigned lane = 0, warp = 0;
  Fiber* fiber = nullptr;
  bool after_past = false;  ///< ordered after the blocks before
  Location where{"", 0};    ///< where it waits, and for what:
  Vote vote = Vote::none;
  int predicate = 0, count = 0;
  WarpOp op = WarpOp::sync;
  unsigned mask = 0;
  int argument = 0, width = 0;
  Value given{}, got{};
  unsigned barriers = 0, warp_syncs = 0;  ///< how many lie behind it
};

struct Machine {
  QuietLock one_grid;
  std::deque<Fiber> fibers;  ///< as many as the largest block had threads
  std::deque<Thread> threads;
  unsigned size = 0, alive = 0;
  uint64_t block = 0;  ///< number of the block since the start
  size_t stack_bytes = 0;
  uint64_t random = 1;
  Thread* running = nullptr;
  const Kernel* kernel = nullptr;
  SharedMark* unknown_mark = nullptr;  ///< whose arrays the host shall look up
  std::unique_ptr<void, decltype(&std::free)> shared{nullptr, &std::free};
  std::string error;
  std::exception_ptr thrown;
};
extern Machine machine;

// Addresses that stand for what is put in order. Of some there are two, taken in turn: a thread may arrive at the next
// barrier, or block, before others have left this one.
struct Addresses {
  char launch[8], past[8], left[8], fence[8], ends[2][8], barrier[2][8], warp[32][2][8], lane[32][32][8];
};
extern Addresses order_of;

// ---- for the running fiber ----
void leave(bool for_good);
/// Thrown through the kernel by a thread that found an error, which ends the grid.
struct Stop {
  std::string error;
};
[[noreturn]] inline void give_up(const std::string& error) { throw Stop{error}; }

// ---- warps ----
Thread& thread_at(unsigned warp, unsigned lane);
/// How many lanes the warp has.
unsigned lanes_of(unsigned warp);
/// Whether t takes part in the warp operation that self waits at.
bool arrived(const Thread& t, const Thread& self);

// ---- words for reports ----
bool same(const Location& a, const Location& b);
std::string text(const uint3& index);
std::string text(const Location& where);
std::string text(const Thread& t);
const char* text(WarpOp op);

}  // namespace simt
