// Learning rate schedules.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace weft::optim {
namespace {

/// From a at part 0 to b at part 1, along half a cosine.
double cosine_between(double a, double b, double part) {
  return b + (a - b) / 2 * (1 + std::cos(std::numbers::pi * part));
}

void check_steps(const char* schedule, int64_t steps) {
  WEFT_CHECK(steps >= 1, schedule, "the number of steps must be at least 1, got {}", steps);
}

}  // namespace

double Schedule::at(int64_t step) const {
  WEFT_CHECK(step >= 0, "schedule", "steps count from 0, got {}", step);
  return f_(step);
}

namespace schedule {

Schedule constant(double lr) {
  check_not_negative("constant", "lr", lr);
  return Schedule([lr](int64_t) { return lr; });
}

Schedule step_decay(double lr, const StepDecayOptions& options) {
  check_not_negative("step_decay", "lr", lr);
  check_not_negative("step_decay", "gamma", options.gamma);
  check_steps("step_decay", options.every);
  return Schedule(
      [lr, o = options](int64_t step) { return lr * std::pow(o.gamma, static_cast<double>(step / o.every)); });
}

Schedule multi_step(double lr, const MultiStepOptions& options) {
  check_not_negative("multi_step", "lr", lr);
  check_not_negative("multi_step", "gamma", options.gamma);
  WEFT_CHECK(std::ranges::is_sorted(options.milestones), "multi_step", "the milestones must rise");
  return Schedule([lr, o = options](int64_t step) {
    const auto reached = std::ranges::upper_bound(o.milestones, step) - o.milestones.begin();
    return lr * std::pow(o.gamma, static_cast<double>(reached));
  });
}

Schedule exponential(double lr, const ExponentialOptions& options) {
  check_not_negative("exponential", "lr", lr);
  check_not_negative("exponential", "gamma", options.gamma);
  return Schedule(
      [lr, gamma = options.gamma](int64_t step) { return lr * std::pow(gamma, static_cast<double>(step)); });
}

Schedule cosine(double lr, const CosineOptions& options) {
  check_not_negative("cosine", "lr", lr);
  check_not_negative("cosine", "min_lr", options.min_lr);
  check_steps("cosine", options.steps);
  return Schedule([lr, o = options](int64_t step) {
    return cosine_between(lr, o.min_lr, static_cast<double>(std::min(step, o.steps)) / static_cast<double>(o.steps));
  });
}

Schedule linear_warmup(double lr, const LinearWarmupOptions& options) {
  check_not_negative("linear_warmup", "lr", lr);
  check_not_negative("linear_warmup", "start_factor", options.start_factor);
  check_steps("linear_warmup", options.steps);
  return Schedule([lr, o = options](int64_t step) {
    if (step >= o.steps) return lr;
    return lr * (o.start_factor + (1 - o.start_factor) * static_cast<double>(step) / static_cast<double>(o.steps));
  });
}

Schedule one_cycle(double max_lr, const OneCycleOptions& options) {
  check_not_negative("one_cycle", "max_lr", max_lr);
  check_steps("one_cycle", options.steps);
  WEFT_CHECK(options.pct_start >= 0 && options.pct_start <= 1, "one_cycle", "pct_start must be in [0, 1], got {}",
             options.pct_start);
  WEFT_CHECK(options.div_factor > 0 && options.final_div_factor > 0, "one_cycle",
             "both factors must be above 0, got div_factor {} and final_div_factor {}", options.div_factor,
             options.final_div_factor);
  return Schedule([max_lr, o = options](int64_t step) {
    const double first = max_lr / o.div_factor, last = first / o.final_div_factor;
    // The top lies at step pct_start · steps - 1, which need not be whole, and the end at the run's last step.
    const double top = o.pct_start * static_cast<double>(o.steps) - 1, end = static_cast<double>(o.steps - 1);
    const double t = std::min(static_cast<double>(step), end);
    if (t <= top) return top > 0 ? cosine_between(first, max_lr, t / top) : max_lr;
    return end > top ? cosine_between(max_lr, last, (t - top) / (end - top)) : last;
  });
}

Schedule chain(std::vector<Phase> phases) {
  WEFT_CHECK(!phases.empty(), "chain", "wants at least one phase");
  for (size_t i = 0; i + 1 < phases.size(); ++i)
    WEFT_CHECK(phases[i].steps >= 0, "chain", "phase {} has {} steps", i, phases[i].steps);
  return Schedule([phases = std::move(phases)](int64_t step) {
    size_t i = 0;
    for (; i + 1 < phases.size() && step >= phases[i].steps; ++i) step -= phases[i].steps;
    return phases[i].schedule.at(step);
  });
}

}  // namespace schedule

Scheduler::Scheduler(Optimizer& optimizer, Schedule schedule, std::vector<double> scales)
    : optimizer_(&optimizer), schedule_(std::move(schedule)), scales_(std::move(scales)) {
  WEFT_CHECK(scales_.empty() || scales_.size() == optimizer.groups(), "scheduler", "{} scales for {} groups",
             scales_.size(), optimizer.groups());
  apply();
}

void Scheduler::apply() {
  const double lr = schedule_.at(step_);
  for (size_t i = 0; i < optimizer_->groups(); ++i) optimizer_->set_lr(i, scales_.empty() ? lr : lr * scales_[i]);
}

void Scheduler::step() {
  ++step_;
  apply();
}

std::vector<Named> Scheduler::state_dict() const { return {{"step", scalar(step_, i64)}}; }

void Scheduler::load_state_dict(const std::vector<Named>& state) {
  WEFT_CHECK(state.size() == 1 && state[0].name == "step" && state[0].value.defined() &&
                 state[0].value.dtype() == i64 && state[0].value.numel() == 1,
             "scheduler", "the state must be one i64 named step");
  const int64_t step = state[0].value.to_vector<int64_t>().front();
  WEFT_CHECK(step >= 0, "scheduler", "the state's step is {}", step);
  step_ = step;
  apply();
}

}  // namespace weft::optim
