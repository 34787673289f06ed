// Schedules against their formulas, and resume at every step.
#include "optim/schedule.h"

#include <gtest/gtest.h>

#include "optim/adam.h"
#include "optim/sgd.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using namespace optim;

void expect_rates(const Schedule& schedule, const std::vector<double>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(schedule.at(static_cast<int64_t>(i)), wanted[i], 1e-12) << "step " << i;
}

TEST(Schedules, AreTheirFormulas) {
  expect_rates(schedule::constant(0.5), {0.5, 0.5});
  expect_rates(schedule::step_decay(1, {.every = 2, .gamma = 0.7}), {1, 1, 0.7, 0.7, 0.49});
  expect_rates(schedule::multi_step(1, {.milestones = {0, 2, 2, 4}, .gamma = 0.5}),
               {0.5, 0.5, 0.125, 0.125, 0.0625, 0.0625});
  expect_rates(schedule::exponential(2, {.gamma = 0.5}), {2, 1, 0.5});
  expect_rates(schedule::cosine(1, {.steps = 4, .min_lr = 0.2}),
               {1, 0.6 + 0.4 * std::sqrt(0.5), 0.6, 0.6 - 0.4 * std::sqrt(0.5), 0.2, 0.2});
  expect_rates(schedule::linear_warmup(3, {.steps = 4}), {1, 1.5, 2, 2.5, 3, 3});
  expect_rates(schedule::linear_warmup(1, {.steps = 2, .start_factor = 0}), {0, 0.5, 1});
}

TEST(Schedules, OneCycleRisesAndFalls) {
  const Schedule s = schedule::one_cycle(1, {.steps = 10});  // the top is step 2, the end step 9
  const double first = 1.0 / 25, last = first / 1e4, pi = std::acos(-1.0);
  expect_rates(s, {first, (first + 1) / 2, 1});
  for (int64_t t = 2; t < 10; ++t)
    EXPECT_NEAR(s.at(t), last + (1 - last) / 2 * (1 + std::cos(pi * double(t - 2) / 7)), 1e-12);
  EXPECT_EQ(s.at(9), s.at(100));
  expect_rates(schedule::one_cycle(1, {.steps = 1}), {last + (1 - last) / 2 * (1 + std::cos(pi))});
  EXPECT_NEAR(schedule::one_cycle(1, {.steps = 2, .pct_start = 0.5}).at(0), 1, 1e-12);
  EXPECT_NEAR(schedule::one_cycle(1, {.steps = 3, .pct_start = 1}).at(2), 1, 1e-12);
  EXPECT_NEAR(schedule::one_cycle(1, {.steps = 4, .pct_start = 0}).at(3), last, 1e-12);
}

TEST(Schedules, ChainCountsEachPhaseFromZero) {
  const Schedule s = schedule::chain({{schedule::linear_warmup(1, {.steps = 2, .start_factor = 0}), 2},
                                      {schedule::constant(5), 0},
                                      {schedule::exponential(1, {.gamma = 0.5}), 3},
                                      {schedule::constant(0.1)}});
  expect_rates(s, {0, 0.5, 1, 0.5, 0.25, 0.1, 0.1});
}

TEST(Schedules, RefuseBadValues) {
  EXPECT_THROW(schedule::constant(-1), Error);
  EXPECT_THROW(schedule::step_decay(1, {.every = 0}), Error);
  EXPECT_THROW(schedule::multi_step(1, {.milestones = {4, 2}}), Error);
  EXPECT_THROW(schedule::cosine(1, {.steps = 0}), Error);
  EXPECT_THROW(schedule::one_cycle(1, {.steps = 10, .pct_start = 1.5}), Error);
  EXPECT_THROW(schedule::one_cycle(1, {.steps = 10, .div_factor = 0}), Error);
  EXPECT_THROW(schedule::chain({}), Error);
  EXPECT_THROW(schedule::constant(1).at(-1), Error);
}

std::vector<Schedule> all_schedules() {
  return {schedule::constant(0.5),
          schedule::step_decay(1, {.every = 3}),
          schedule::multi_step(1, {.milestones = {4, 7}}),
          schedule::exponential(1, {.gamma = 0.9}),
          schedule::cosine(1, {.steps = 8}),
          schedule::linear_warmup(1, {.steps = 4}),
          schedule::one_cycle(1, {.steps = 10}),
          schedule::chain({{schedule::linear_warmup(1, {.steps = 4}), 4}, {schedule::cosine(1, {.steps = 6}), 6}}),
          Schedule([](int64_t step) { return 1.0 / static_cast<double>(step + 1); })};
}

/// Case 28: cut at every step, the first and the milestones too, whichever of the two states is loaded first.
TEST(Schedules, ResumeAtEveryStepContinuesTheRates) {
  constexpr int kSteps = 12;
  for (const Schedule& s : all_schedules())
    for (int cut = 0; cut <= kSteps; ++cut) {
      std::vector<Named> parameters = testing::parameters({{2}});
      SGD straight(parameters);
      Scheduler scheduler(straight, s);
      std::vector<double> rates;
      std::vector<Named> saved, saved_optimizer;
      for (int t = 0; t <= kSteps; ++t) {
        if (t == cut) saved = scheduler.state_dict(), saved_optimizer = straight.state_dict();
        rates.push_back(straight.lr());
        straight.step();
        scheduler.step();
      }
      for (const bool optimizer_first : {true, false}) {
        SGD resumed(parameters, {.lr = 77});
        Scheduler again(resumed, s);
        if (optimizer_first) resumed.load_state_dict(saved_optimizer);
        again.load_state_dict(saved);
        if (!optimizer_first) resumed.load_state_dict(saved_optimizer);
        EXPECT_EQ(again.steps(), cut);
        for (int t = cut; t <= kSteps; ++t) {
          EXPECT_EQ(resumed.lr(), rates[static_cast<size_t>(t)]) << "cut " << cut << ", step " << t;
          again.step();
        }
      }
    }
}

TEST(Schedules, GroupsKeepTheirScale) {
  const std::vector<Named> p = testing::parameters({{2}, {2}});
  AdamW adamw(std::vector<Group<AdamWOptions>>{{{p[0]}}, {{p[1]}}});
  Scheduler scheduler(adamw, schedule::exponential(1, {.gamma = 0.5}), {1, 0.1});
  scheduler.step();
  EXPECT_EQ(adamw.lr(0), 0.5);
  EXPECT_EQ(adamw.lr(1), 0.05);
  EXPECT_THROW(Scheduler(adamw, schedule::constant(1), {1}), Error);
  EXPECT_THROW(scheduler.load_state_dict({}), Error);
  EXPECT_THROW(scheduler.load_state_dict({{"step", scalar(-1, i64)}}), Error);
  EXPECT_EQ(scheduler.steps(), 1);
}

}  // namespace
}  // namespace weft
