// What a device beside the CPU brings: its kernels and its runtime, in one struct that a plug-in exports. A plug-in is
// opened at the first use of its device, so that a run on the CPU pays nothing for it and needs none of its libraries.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/kernels.h"

namespace weft {

/// More devices of a type than any machine has.
inline constexpr int kMostDevices = 64;

/// Functions work on the device that `set_device` chose for the calling thread, and throw Error where the runtime
/// reports a fault; those that give something back do not throw. Streams, events and graphs are handles of the
/// backend's own.
struct Backend {
  int64_t table_bytes;  // sizeof(Backend) where the plug-in was compiled: another one is of another version
  kernels::Table kernels;

  /// At least 1; throws the reason where there is no device.
  int (*device_count)();
  std::string (*device_name)(int device);
  void (*set_device)(int device);
  /// Free and total bytes of the device.
  void (*memory)(int64_t& free, int64_t& total);

  void* (*allocate)(int64_t bytes);  // null where there is no room
  void (*release)(void* block) noexcept;
  void* (*allocate_host)(int64_t bytes);  // pinned: the device reads and writes it by itself
  void (*release_host)(void* block) noexcept;

  void* (*create_stream)();
  void (*destroy_stream)(void* stream) noexcept;
  /// Waits for all work in the stream; throws what its kernels found wrong (a label out of range).
  void (*synchronize)(void* stream);
  /// Waits, and leaves what was found wrong to the next `synchronize`.
  void (*wait)(void* stream) noexcept;
  /// Between any two memories, in the stream's order. Host memory that is not pinned has been read at the return.
  void (*copy)(void* to, const void* from, int64_t bytes, void* stream);
  void (*set_bytes)(void* to, int value, int64_t bytes, void* stream);

  void* (*create_event)();
  void (*destroy_event)(void* event) noexcept;
  void (*record_event)(void* event, void* stream);
  void (*wait_event)(void* stream, void* event);
  void (*synchronize_event)(void* event);

  /// From here on the stream's work is noted down, not done.
  void (*begin_capture)(void* stream);
  /// The noted work, ready to be launched; throws where something could not be captured.
  void* (*end_capture)(void* stream);
  void (*abandon_capture)(void* stream) noexcept;
  void (*launch_graph)(void* graph, void* stream);
  void (*destroy_graph)(void* graph) noexcept;
};

/// The name of the one function that a plug-in exports.
inline constexpr const char* kBackendSymbol = "weft_backend";
using BackendFunction = const Backend*();

/// Opens the plug-in of `type` at the first call; throws why there is none, the same at every call.
const Backend& backend(DeviceType type);
/// The same, with `device` as the one that this thread's calls are for.
const Backend& backend_in_use(Device device);
/// Empty where `device` can be used, else the reason.
std::string why_unavailable(Device device);

}  // namespace weft
