// Errors and where they happened. A caller's mistake throws weft::Error through WEFT_CHECK; a bug of ours throws
// through WEFT_ASSERT. Every message names the op and, inside a model, the module path.
#pragma once

#ifndef __CUDACC__
#include <fmt/core.h>
#endif

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weft {

/// Thrown for every mistake of a caller and every fault found in input from outside.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The module path that the running thread is inside of ("MnistNet.conv2"); empty outside of modules. Error messages,
/// anomaly reports and the allocator's owner statistics read it.
class Scope {
 public:
  /// Enters `path` (an id from `intern`) until the end of the block.
  explicit Scope(uint32_t id) : outer_(current()) { current() = id; }
  ~Scope() { current() = outer_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  /// The id of a path; equal paths have equal ids, 0 is "no module".
  static uint32_t intern(std::string_view path);
  static const std::string& path(uint32_t id);
  static uint32_t& current();

 private:
  uint32_t outer_;
};

/// Throws Error with "[op] module path: message".
[[noreturn]] void fail(std::string_view op, std::string_view message);
[[noreturn]] void fail_assert(const char* condition, const char* file, int line);

}  // namespace weft

#ifndef __CUDACC__  // whose front end cannot read fmt; kernels leave checks to the ops
/// A caller's mistake: `WEFT_CHECK(x.dim() == 4, "conv2d", "input wants 4 dimensions, got {}", x.dim())`.
#define WEFT_CHECK(condition, op, ...)              \
  do {                                              \
    if (!(condition)) [[unlikely]]                  \
      ::weft::fail(op, ::fmt::format(__VA_ARGS__)); \
  } while (false)
#endif

/// A bug of ours.
#define WEFT_ASSERT(condition)                             \
  do {                                                     \
    if (!(condition)) [[unlikely]]                         \
      ::weft::fail_assert(#condition, __FILE__, __LINE__); \
  } while (false)
