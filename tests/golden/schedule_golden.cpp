// The learning rates of each schedule, and clipping, against PyTorch.
#include <gtest/gtest.h>

#include "optim/clip.h"
#include "optim/schedule.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

using optim::Schedule;
namespace schedules = optim::schedule;

TEST(Golden, schedule) {
  const std::vector<std::pair<std::string, Schedule>> rows = {
      {"step", schedules::step_decay(0.5, {.every = 4, .gamma = 0.7})},
      {"multi_step", schedules::multi_step(0.5, {.milestones = {2, 7, 8}, .gamma = 0.1})},
      {"exponential", schedules::exponential(0.5, {.gamma = 0.9})},
      {"cosine", schedules::cosine(0.5, {.steps = 19, .min_lr = 0.01})},
      {"warmup", schedules::linear_warmup(0.5, {.steps = 5, .start_factor = 0.1})},
      {"one_cycle", schedules::one_cycle(0.5, {.steps = 20})},
      {"one_cycle_settings",
       schedules::one_cycle(0.5, {.steps = 20, .pct_start = 0.4, .div_factor = 10, .final_div_factor = 100})},
      {"chain", schedules::chain({{schedules::linear_warmup(0.5, {.steps = 5, .start_factor = 0.1}), 5},
                                  {schedules::cosine(0.5, {.steps = 15})}})},
  };
  const auto entries = load_golden("schedule");
  std::vector<std::string> names;
  for (const auto& [name, schedule] : rows) names.push_back(name);
  expect_same_names(entries, names);
  for (const auto& [name, schedule] : rows) {
    const Tensor wanted = entries.at(name).at("lr");
    std::vector<double> rates;
    for (int64_t step = 0; step < wanted.numel(); ++step) rates.push_back(schedule.at(step));
    expect_near(from(rates, wanted.sizes()), wanted, Tolerance{}.f64, name);
  }
}

TEST(Golden, clip) {
  const auto entries = load_golden("clip");
  expect_same_names(entries, {"norm/shortened", "norm/left_alone", "value"});
  for (const auto& [name, entry] : entries) {
    SCOPED_TRACE(name);
    std::vector<Named> parameters;
    for (const char* key : {"in0", "in1"}) {
      Tensor p = zeros(entry.at(key).sizes(), f64);
      p.requires_grad_();
      p.set_grad(entry.at(key).clone());
      parameters.push_back({key, p});
    }
    if (name == "value")
      optim::clip_grad_value(parameters, 0.5);
    else
      expect_near(scalar(optim::clip_grad_norm(parameters, name == "norm/shortened" ? 1 : 100), f64), entry.at("norm"),
                  Tolerance{}.f64, "norm");
    // PyTorch divides by norm + 1e-6, we divide by the norm: 1e-6 / 4 apart.
    const double allowed = name == "norm/shortened" ? 1e-6 : Tolerance{}.f64;
    expect_near(parameters[0].value.grad(), entry.at("out0"), allowed, "out0");
    expect_near(parameters[1].value.grad(), entry.at("out1"), allowed, "out1");
  }
}

}  // namespace
}  // namespace weft::testing
