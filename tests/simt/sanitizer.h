// What the emulator tells AddressSanitizer and ThreadSanitizer. Its own files are built without them; the functions are
// there when the program is linked with one. For a plug-in they come from the program.
#pragma once

#include <cstddef>

extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, size_t* size);
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* begin, size_t size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* begin, size_t size);
__attribute__((weak)) void* __tsan_get_current_fiber();
__attribute__((weak)) void* __tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void* fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void* fiber, unsigned flags);
__attribute__((weak)) void __tsan_acquire(void* address);
__attribute__((weak)) void __tsan_release(void* address);
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char* file, int line);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace simt {

/// What happened before a `release` of the address happened before what follows an `acquire` of it.
inline void acquire(void* address) {
  if (__tsan_acquire) __tsan_acquire(address);
}
inline void release(void* address) {
  if (__tsan_release) __tsan_release(address);
}
/// A switch that puts nothing in order by itself.
inline void switch_tsan(void* fiber) {
  if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(fiber, 1);
}
inline void poison(void* begin, size_t size) {
  if (__asan_poison_memory_region) __asan_poison_memory_region(begin, size);
}
inline void unpoison(void* begin, size_t size) {
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(begin, size);
}

/// From true to false ThreadSanitizer takes no access of this thread for one.
inline void set_unseen(bool unseen) {
  if (!AnnotateIgnoreReadsBegin) return;
  (unseen ? AnnotateIgnoreReadsBegin : AnnotateIgnoreReadsEnd)("", 0);
  (unseen ? AnnotateIgnoreWritesBegin : AnnotateIgnoreWritesEnd)("", 0);
}

}  // namespace simt
