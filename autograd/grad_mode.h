// Thread-local switches of the tape.
#pragma once

namespace weft {

/// Whether operations are recorded on this thread.
bool grad_enabled();

/// Turns recording off until the end of the block: `NoGrad guard;`.
class NoGrad {
 public:
  explicit NoGrad(bool off = true);
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool before_;
};

/// Turns recording on inside a NoGrad block (recompute and gradcheck need it).
class EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool before_;
};

/// While one lives, every recorded value and every gradient is checked, and the first NaN or infinity throws with the
/// op and the module that made it. Slow: for finding a fault.
class AnomalyMode {
 public:
  AnomalyMode();
  ~AnomalyMode();
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;
  static bool enabled();

 private:
  bool before_;
};

}  // namespace weft
