// What changes from step to step where a step is captured once and replayed. A graph launches its kernels with the
// arguments of the capture, so the few that change (learning rates, corrections, places in the random stream) are read
// from device memory there; everywhere else they are passed by value.
#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>
#include <vector>

#include "tensor/host_device.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

namespace weft {

/// An argument of a kernel: its value, or where a captured step finds it.
template <class T>
struct StepValue {
  T value;
  const T* on_device = nullptr;

  WEFT_HD T get() const { return on_device ? *on_device : value; }
};

/// The changing arguments of one captured step. On the thread that captures and replays:
///
///   StepValues values(device);                          // before the capture begins
///   begin_capture; values.record([&] { all of the step }); end_capture;
///   values.write(); launch_graph;                       // the captured step, which has not run yet
///   values.refresh([&] { optimizer.step(); });          // each further step
///   values.write(); launch_graph;
///
/// A captured run draws the random numbers that an eager run draws, and steps as it steps. The step must have run
/// eagerly before, since state that is made in a capture would be made anew by each replay.
class StepValues {
 public:
  explicit StepValues(Device device);
  StepValues(const StepValues&) = delete;
  StepValues& operator=(const StepValues&) = delete;

  /// Runs `step`, whose launchers get places for their changing arguments. Throws where one draws from a generator that
  /// is not this thread's default.
  void record(const std::function<void()>& step);
  /// Takes the values of the next step: places in the random stream from the default generator, which moves as the
  /// recorded step moved it; all others from `step`, the host's part of it (an optimizer's step): nothing is launched,
  /// and launchers leave their values in the recorded order. Throws where `step` is not as it was.
  void refresh(const std::function<void()>& step);
  /// Puts the values where the graph's kernels read them, in the order of the current stream.
  void write() const;

  /// Whether this thread is in `record` or in `refresh`.
  static bool recording();
  static bool refreshing();

 private:
  friend const void* step_slot(const void* value, int64_t bytes);
  friend StepValue<Philox> step_value(const Philox& state);

  struct Place {
    int64_t begin, bytes;
  };
  struct Draw {
    int64_t begin;
    uint64_t ahead;  // of the generator at the start of the step
  };

  void run(bool refresh, const std::function<void()>& step);
  int64_t add(const void* value, int64_t bytes);
  void set(int64_t begin, const void* value, int64_t bytes);

  std::vector<std::byte> host_;
  Tensor device_;  // as many bytes
  int64_t used_ = 0;
  std::vector<Place> places_;
  std::vector<Draw> draws_;
  size_t next_ = 0;     // place, in a refresh
  Philox start_;        // of the generator, when the recorded step began
  uint64_t moved_ = 0;  // how far it went
};

/// The place of a value on the device; null where no step is recorded.
const void* step_slot(const void* value, int64_t bytes);

/// For launchers: an argument that changes from step to step, as its kernel takes it. Once a call of the table, in an
/// order that does not change.
template <class T>
StepValue<T> step_value(const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 16);
  return {value, static_cast<const T*>(step_slot(&value, sizeof(T)))};
}
/// The same for a place in the random stream.
StepValue<Philox> step_value(const Philox& state);

}  // namespace weft
