// What a run prints: one line an epoch, redrawn in place on a terminal and cut to its width; plain lines with the same
// facts elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace weft::train {

/// 1234567 → "1,234,567".
std::string with_commas(int64_t n);
/// Seconds as "m:ss", or "h:mm:ss" from an hour on.
std::string clock_time(double seconds);

/// Shows one epoch at a time on `out`.
class Progress {
 public:
  Progress(std::FILE* out, int64_t epochs);
  /// Ends a line that an exception left open, so that its message gets a line of its own.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Starts the line of epoch `epoch`, counted from 1, with `steps` steps.
  void begin_epoch(int64_t epoch, int64_t steps);
  /// Step `step` (counted from 1) is done; `samples` is how many its batch had, `loss` the epoch's mean so far.
  void step(int64_t step, int64_t samples, double loss);
  /// Completes the line: the training loss, what `test` says ("test 98.31 %"), and the time that the epoch took.
  void end_epoch(double loss, const std::string& test);

  /// From the epoch's start to its last step: training without evaluation.
  double training_seconds() const { return seconds(started_, last_step_); }

 private:
  using Clock = std::chrono::steady_clock;

  static double seconds(Clock::time_point from, Clock::time_point to);
  static double seconds_since(Clock::time_point start) { return seconds(start, Clock::now()); }
  std::string line(double loss, const std::string& tail) const;
  void show(const std::string& text, bool last);

  std::FILE* out_;
  bool terminal_, open_ = false;
  int64_t epochs_, epoch_ = 0, steps_ = 0, step_ = 0, samples_ = 0;
  Clock::time_point started_, last_shown_, last_step_;
};

}  // namespace weft::train
