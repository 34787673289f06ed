// Learning rates as pure functions of the step, so that a resumed run has the rates of one that never stopped. Step 0
// is the first update.
#pragma once

#include <functional>
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

/// A learning rate for every step; any function of the step is one.
class Schedule {
 public:
  explicit Schedule(std::function<double(int64_t step)> f) : f_(std::move(f)) {}
  /// Throws for a negative step.
  double at(int64_t step) const;

 private:
  std::function<double(int64_t)> f_;
};

namespace schedule {

Schedule constant(double lr);

struct StepDecayOptions {
  int64_t every;  ///< steps
  double gamma = 0.1;
};
/// lr · gamma^⌊step / every⌋.
Schedule step_decay(double lr, const StepDecayOptions& options);

struct MultiStepOptions {
  std::vector<int64_t> milestones;  ///< rising; a step that is one runs with the new rate
  double gamma = 0.1;
};
/// lr · gamma^(milestones reached).
Schedule multi_step(double lr, const MultiStepOptions& options);

struct ExponentialOptions {
  double gamma;
};
/// lr · gamma^step.
Schedule exponential(double lr, const ExponentialOptions& options);

struct CosineOptions {
  int64_t steps;
  double min_lr = 0;
};
/// Half a cosine from lr at step 0 to min_lr at step `steps`, where it stays (Loshchilov and Hutter, 2017,
/// arXiv:1608.03983, equation 5, without restarts).
Schedule cosine(double lr, const CosineOptions& options);

struct LinearWarmupOptions {
  int64_t steps;
  double start_factor = 1.0 / 3;  ///< of lr, at step 0
};
/// A line from start_factor · lr at step 0 to lr at step `steps`, where it stays.
Schedule linear_warmup(double lr, const LinearWarmupOptions& options);

struct OneCycleOptions {
  int64_t steps;                  ///< the whole run
  double pct_start = 0.3;         ///< part of the run in which the rate rises
  double div_factor = 25;         ///< the first rate is max_lr / div_factor
  double final_div_factor = 1e4;  ///< the last is the first / final_div_factor
};
/// Up to max_lr and down again along half cosines (Smith and Topin, 2018, arXiv:1708.07120); past the run it stays.
Schedule one_cycle(double max_lr, const OneCycleOptions& options);

struct Phase {
  Schedule schedule;
  int64_t steps = 0;  ///< ignored for the last one, which goes on
};
/// One after the other; each counts its steps from 0.
Schedule chain(std::vector<Phase> phases);

}  // namespace schedule

/// Keeps an optimizer's learning rate on a schedule: sets the first rate when made, the next with every `step`.
class Scheduler {
 public:
  /// Group i gets the schedule's rate times scales[i]; 1 where there are no scales.
  Scheduler(Optimizer& optimizer, Schedule schedule, std::vector<double> scales = {});

  /// Call it once after each `optimizer.step()`.
  void step();
  /// Steps made so far.
  int64_t steps() const { return step_; }
  double lr() const { return schedule_.at(step_); }

  /// One i64, "step".
  std::vector<Named> state_dict() const;
  /// Also sets the optimizer's rate, so the order in which both are loaded does not matter.
  void load_state_dict(const std::vector<Named>& state);

 private:
  void apply();

  Optimizer* optimizer_;
  Schedule schedule_;
  std::vector<double> scales_;
  int64_t step_ = 0;
};

}  // namespace weft::optim
