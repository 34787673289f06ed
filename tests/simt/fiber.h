// Fibers of one thread: each has a stack with a guard page, and control goes to and fro between it and the host.
#pragma once

#include <cstddef>

namespace simt {

class Fiber {
 public:
  explicit Fiber(size_t stack_bytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next `resume` begins `body`, whatever the fiber did before; `body` ends with `leave(true)`.
  void start(void (*body)());
  /// Host to fiber; returns when the fiber leaves.
  void resume();
  /// Fiber to host; `for_good` unless it is to be resumed.
  void leave(bool for_good);

 private:
  struct Context;
  static void enter();
  void prepare_stack();
  void to_fiber();
  void to_host();

  char* stack_;
  size_t stack_bytes_;
  void (*body_)() = nullptr;
  void* stack_pointer_ = nullptr;
  Context* context_ = nullptr;
  void* fake_stack_ = nullptr;
  void* tsan_ = nullptr;
};

}  // namespace simt
