// Optimizer state: resume is exact, and a state that does not fit changes nothing.
#include <gtest/gtest.h>

#include <map>

#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using namespace optim;

std::vector<Named> copies(const std::vector<Named>& list) {
  std::vector<Named> out;
  for (const Named& x : list) out.push_back({x.name, raw::clone(x.value)});
  return out;
}

const std::vector<Shape> kSizes = {{3, 4}, {7}, {5}};

/// Trains 3 + 3 steps; the second half once more by an optimizer with `others` for options, which loads the state.
template <class O, class Options>
void check_resume(const Options& options, const Options& others) {
  std::vector<Named> parameters = testing::parameters(kSizes, f32);
  const auto train = [](Optimizer& optimizer, std::vector<Named>& p, int first, int last) {
    for (int t = first; t <= last; ++t) {
      testing::set_gradients(p, t);
      if (t < 3) p[1].value.set_grad({});  // a step count of its own
      if (t < 6) p[2].value.set_grad({});  // no state yet at the cut
      optimizer.step();
    }
  };
  O straight(parameters, options);
  train(straight, parameters, 1, 3);
  const std::vector<Named> saved = copies(straight.state_dict());
  std::vector<Named> resumed;
  for (const Named& p : parameters) resumed.push_back(testing::parameter(p.name, p.value));
  train(straight, parameters, 4, 6);

  O other(resumed, others);
  other.load_state_dict(saved);
  train(other, resumed, 4, 6);
  EXPECT_EQ(testing::flat(resumed), testing::flat(parameters)) << straight.name();
  EXPECT_EQ(testing::flat(other.state_dict()), testing::flat(straight.state_dict())) << straight.name();
}

/// Case 24: step counts and hyperparameters come from the state, whatever the constructor was given.
TEST(OptimizerState, ResumeIsExactWithOtherConstructorOptions) {
  check_resume<AdamW, AdamWOptions>({.lr = 0.01, .beta1 = 0.8, .beta2 = 0.95}, {.beta1 = 0.1, .beta2 = 0.2, .eps = 1});
  check_resume<AdamW, AdamWOptions>({.lr = 0.01, .amsgrad = true}, {});
  check_resume<Adam, AdamOptions>({.lr = 0.01, .weight_decay = 0.1}, {.amsgrad = true});
  check_resume<SGD, SgdOptions>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, {});
  check_resume<SGD, SgdOptions>({.lr = 0.1}, {.momentum = 0.9, .nesterov = true});
  check_resume<RMSprop, RmspropOptions>({.momentum = 0.5, .centered = true}, {.momentum = 0.5});
  check_resume<Adagrad, AdagradOptions>({.lr_decay = 0.2, .initial_accumulator_value = 0.5}, {});
  check_resume<Adadelta, AdadeltaOptions>({.rho = 0.5}, {});
}

TEST(OptimizerState, NamesTypesAndSizes) {
  std::vector<Named> parameters = {testing::parameter("conv1.weight", ones({2, 3}))};
  AdamW adamw(parameters);
  EXPECT_EQ(adamw.state_dict().size(), 7u);  // six hyperparameters and a step count of 0
  parameters[0].value.set_grad(ones({2, 3}));
  adamw.step();
  std::map<std::string, Tensor> state;
  for (const Named& x : adamw.state_dict()) state[x.name] = x.value;
  EXPECT_EQ(state.size(), 9u);
  EXPECT_EQ(state.at("group.0.beta2").to_vector<double>(), std::vector<double>{0.999});
  EXPECT_EQ(state.at("step.conv1.weight").to_vector<int64_t>(), std::vector<int64_t>{1});
  EXPECT_EQ(state.at("exp_avg.conv1.weight").sizes(), (Shape{2, 3}));
  EXPECT_NEAR(state.at("exp_avg_sq.conv1.weight").to_vector<float>()[5], 1e-3, 1e-9);
}

TEST(OptimizerState, ALoadedStateIsACopy) {
  std::vector<Named> parameters = testing::parameters({{4}});
  AdamW a(parameters);
  testing::set_gradients(parameters, 1);
  a.step();
  const std::vector<Named> saved = copies(a.state_dict());
  AdamW b(parameters);
  b.load_state_dict(saved);
  b.step();
  EXPECT_EQ(testing::flat(saved), testing::flat(a.state_dict()));
}

TEST(OptimizerState, LayoutOfTheStateFollowsTheParameter) {
  std::vector<Named> last = {testing::parameter("w", raw::channels_last(testing::values({2, 3, 4, 5}, f64, 0, 0)))};
  AdamW a(last);
  testing::set_gradients(last, 1);
  a.step();
  std::vector<Named> saved;
  for (const Named& x : a.state_dict())
    saved.push_back({x.name, raw::contiguous(raw::clone(x.value))});  // as a file has it
  std::vector<Named> again = {testing::parameter("w", last[0].value)};
  AdamW b(again);
  b.load_state_dict(saved);
  testing::set_gradients(last, 2);
  testing::set_gradients(again, 2);
  a.step();
  b.step();
  EXPECT_EQ(testing::flat(last), testing::flat(again));
}

TEST(OptimizerState, WhatDoesNotFitIsListedAndChangesNothing) {
  std::vector<Named> parameters = testing::parameters({{2, 3}, {4}});
  AdamW adamw(parameters, {.lr = 0.5});
  testing::set_gradients(parameters, 1);
  adamw.step();
  std::vector<Named> bad;
  for (const Named& x : adamw.state_dict()) {
    if (x.name == "exp_avg.p1" || x.name == "step.p0") continue;
    if (x.name == "exp_avg_sq.p1")
      bad.push_back({x.name, zeros({3}, f64)});
    else if (x.name == "group.0.lr")
      bad.push_back({x.name, scalar(0.25, f64)});
    else if (x.name == "group.0.beta1")
      bad.push_back({x.name, scalar(1.5, f64)});
    else if (x.name == "step.p1")
      bad.push_back({x.name, scalar(7, i64)});
    else
      bad.push_back(x);
  }
  bad.push_back({"exp_avg.gone", zeros({1}, f64)});
  const auto before = testing::flat(copies(adamw.state_dict()));
  std::string message;
  try {
    adamw.load_state_dict(bad);
  } catch (const Error& error) {
    message = error.what();
  }
  for (const char* part :
       {"[adamw]", "exp_avg.p1 is missing", "step.p0 is missing", "exp_avg_sq.p1 is f64 [3], not f64 [4]",
        "beta1 must be in [0, 1), got 1.5", "exp_avg.gone is unexpected"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
  EXPECT_EQ(message.find("exp_avg.p0"), std::string::npos) << message;
  EXPECT_EQ(testing::flat(adamw.state_dict()), before);
  EXPECT_EQ(adamw.lr(), 0.5);

  SGD sgd(parameters);
  EXPECT_THROW(sgd.load_state_dict(adamw.state_dict()), Error);
  AdamW two(std::vector<Group<AdamWOptions>>{{{parameters[0]}}, {{parameters[1]}}});
  EXPECT_THROW(two.load_state_dict(adamw.state_dict()), Error);
}

}  // namespace
}  // namespace weft
