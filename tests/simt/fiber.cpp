// The switch itself: a few instructions on x86-64, ucontext elsewhere (or with SIMT_UCONTEXT).
#include "tests/simt/fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "tests/simt/sanitizer.h"

#if !defined(__x86_64__) && !defined(SIMT_UCONTEXT)
#define SIMT_UCONTEXT
#endif

#ifdef SIMT_UCONTEXT
#include <ucontext.h>
#else
// Keeps the registers that a call must keep, on the old stack; takes them from the new one.
extern "C" void simt_switch_stack(void** old_pointer, void* new_pointer);
asm(R"(
  .text
  .p2align 4
  .hidden simt_switch_stack
  .globl simt_switch_stack
  .type simt_switch_stack, @function
simt_switch_stack:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
  .size simt_switch_stack, . - simt_switch_stack
)");
#endif

namespace simt {

struct Fiber::Context {
#ifdef SIMT_UCONTEXT
  ucontext_t ucontext;
#endif
};

namespace {
constexpr size_t kPage = 4096;

/// Where fibers return to. One thread at a time runs fibers.
struct Host {
#ifdef SIMT_UCONTEXT
  ucontext_t ucontext;
#endif
  void* stack_pointer = nullptr;
  void* fake_stack = nullptr;
  const void* stack_bottom = nullptr;
  size_t stack_bytes = 0;
  void* tsan = nullptr;
  Fiber* running = nullptr;
} host;
}  // namespace

Fiber::Fiber(size_t stack_bytes) : stack_bytes_((stack_bytes + kPage - 1) / kPage * kPage) {
  void* memory =
      mmap(nullptr, kPage + stack_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kPage, PROT_NONE);
  stack_ = static_cast<char*>(memory) + kPage;
#ifdef SIMT_UCONTEXT
  context_ = new Context;
#endif
  if (__tsan_create_fiber) tsan_ = __tsan_create_fiber(0);
}

Fiber::~Fiber() {
  if (tsan_) __tsan_destroy_fiber(tsan_);
  delete context_;
  unpoison(stack_, stack_bytes_);
  munmap(stack_ - kPage, kPage + stack_bytes_);
}

void Fiber::start(void (*body)()) {
  body_ = body;
  fake_stack_ = nullptr;
  unpoison(stack_, stack_bytes_);  // frames that were left half-way
  prepare_stack();
}

void Fiber::enter() {
  if (__sanitizer_finish_switch_fiber) {
    __sanitizer_finish_switch_fiber(nullptr, &host.stack_bottom, &host.stack_bytes);
  }
  host.running->body_();
  std::abort();
}

void Fiber::resume() {
  host.running = this;
  if (__tsan_get_current_fiber) host.tsan = __tsan_get_current_fiber();
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&host.fake_stack, stack_, stack_bytes_);
  switch_tsan(tsan_);
  to_fiber();
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(host.fake_stack, nullptr, nullptr);
}

void Fiber::leave(bool for_good) {
  if (__sanitizer_start_switch_fiber) {
    __sanitizer_start_switch_fiber(for_good ? nullptr : &fake_stack_, host.stack_bottom, host.stack_bytes);
  }
  switch_tsan(host.tsan);
  to_host();
  if (__sanitizer_finish_switch_fiber) {
    __sanitizer_finish_switch_fiber(fake_stack_, &host.stack_bottom, &host.stack_bytes);
  }
}

#ifdef SIMT_UCONTEXT
void Fiber::prepare_stack() {
  getcontext(&context_->ucontext);
  context_->ucontext.uc_stack.ss_sp = stack_;
  context_->ucontext.uc_stack.ss_size = stack_bytes_;
  context_->ucontext.uc_link = nullptr;
  makecontext(&context_->ucontext, &Fiber::enter, 0);
}
void Fiber::to_fiber() { swapcontext(&host.ucontext, &context_->ucontext); }
void Fiber::to_host() { swapcontext(&context_->ucontext, &host.ucontext); }
#else
void Fiber::prepare_stack() {
  // As if `enter` had been called: a return address at a multiple of 16 bytes less 8, below it the entry and 6
  // registers.
  auto* top = reinterpret_cast<void**>(stack_ + stack_bytes_) - 2;
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&Fiber::enter);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  stack_pointer_ = top;
}
void Fiber::to_fiber() { simt_switch_stack(&host.stack_pointer, stack_pointer_); }
void Fiber::to_host() { simt_switch_stack(&stack_pointer_, host.stack_pointer); }
#endif

}  // namespace simt
