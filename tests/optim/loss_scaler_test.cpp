// Loss scaling: what f16 loses without it, steps that are skipped, and a state that is exact.
#include "optim/loss_scaler.h"

#include <gtest/gtest.h>

#include <limits>

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/sgd.h"
#include "tests/expect_error.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using optim::LossScaler;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// All that an optimizer and its parameters hold.
std::vector<double> everything(const optim::Optimizer& optimizer) {
  std::vector<double> all = testing::flat(optimizer.parameters());
  for (const double v : testing::flat(optimizer.state_dict())) all.push_back(v);
  return all;
}

void set_all_gradients(std::vector<Named>& parameters, float value) {
  for (Named& p : parameters) p.value.set_grad(full(p.value.sizes(), value, p.value.dtype()));
}

TEST(LossScaler, ASmallGradientSurvivesInHalfPrecision) {
  // d loss / d w = 2^-26, which f16 rounds to 0.
  const auto gradient = [](bool scaled) {
    std::vector<Named> p{testing::parameter("w", ones({1, 1}))};
    LossScaler scaler({.enabled = scaled});
    optim::SGD sgd(p, {.lr = 1});
    Tensor loss;
    {
      const Autocast guard(f16);
      loss = sum(linear(ones({1, 1}), p[0].value)) * 0x1p-26;
    }
    scaler.scale(loss).backward();
    EXPECT_TRUE(scaler.unscale(sgd));
    return p[0].value.grad().item();
  };
  EXPECT_EQ(gradient(false), 0);
  EXPECT_EQ(gradient(true), 0x1p-26);
}

TEST(LossScaler, AnOverflowSkipsTheStepAndLeavesTheOptimizer) {
  std::vector<Named> p = testing::parameters({{3}, {2, 2}}, f32);
  optim::AdamW adam(p, {.lr = 0.1});
  LossScaler scaler({.initial = 1024});
  set_all_gradients(p, 1024);
  EXPECT_TRUE(scaler.step(adam));
  EXPECT_EQ(p[0].value.grad().to_vector<float>(), std::vector<float>(3, 1));

  const std::vector<double> before = everything(adam);
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    set_all_gradients(p, 1);
    p[1].value.grad().narrow(0, 1, 1).fill_(bad);
    EXPECT_FALSE(scaler.step(adam));
    EXPECT_EQ(everything(adam), before);
    EXPECT_EQ(p[0].value.grad().to_vector<float>(), std::vector<float>(3, 1)) << "gradients stay as they are";
  }
  EXPECT_EQ(scaler.skipped(), 3);
  EXPECT_EQ(scaler.factor(), 128);
  set_all_gradients(p, 128);
  EXPECT_TRUE(scaler.step(adam));
  EXPECT_NE(everything(adam), before);
}

TEST(LossScaler, ClipsAsTheOptimizerDoes) {
  const auto stepped = [](double factor) {
    std::vector<Named> p = testing::parameters({{3}, {2, 2}}, f32);
    optim::AdamW adam(p, {.lr = 0.1});
    LossScaler scaler({.enabled = factor != 1, .initial = factor});
    for (const double gradient : {4.0, -0.01}) {
      set_all_gradients(p, static_cast<float>(gradient * factor));
      EXPECT_TRUE(scaler.step(adam, {.max_norm = 0.5}));
    }
    return everything(adam);
  };
  EXPECT_EQ(stepped(1024), stepped(1));
}

/// A gradient that leaves f16's range on its way, not one that is set.
TEST(LossScaler, FindsTheFactorThatFits) {
  std::vector<Named> p{testing::parameter("w", ones({1, 1}))};
  optim::SGD sgd(p, {.lr = 0x1p-10});
  LossScaler scaler;
  int64_t steps = 0;
  do {
    sgd.zero_grad();
    Tensor loss;
    {
      const Autocast guard(f16);
      loss = sum(linear(full({1, 1}, 64.0), p[0].value));
    }
    scaler.scale(loss).backward();
    ++steps;
  } while (!scaler.step(sgd));
  EXPECT_EQ(steps, 8);  // 64 · 65536 = 2^22 becomes 2^15, below f16's 65504
  EXPECT_EQ(scaler.skipped(), 7);
  EXPECT_EQ(scaler.factor(), 512);
  EXPECT_EQ(p[0].value.item(), 1 - 64 * 0x1p-10);
}

TEST(LossScaler, RisesAfterGoodStepsInARow) {
  std::vector<Named> p = testing::parameters({{2}}, f32);
  optim::SGD sgd(p, {.lr = 0.1});
  LossScaler scaler({.initial = 8, .growth = 4, .backoff = 0.25, .interval = 3});
  const auto factors = [&](const std::vector<float>& gradients) {
    std::vector<double> out;
    for (const float g : gradients) {
      set_all_gradients(p, g);
      scaler.step(sgd);
      out.push_back(scaler.factor());
    }
    return out;
  };
  EXPECT_EQ(factors({1, 1, 1, 1, 1}), (std::vector<double>{8, 8, 32, 32, 32}));
  EXPECT_EQ(factors({kInfinity, 1, 1, 1}), (std::vector<double>{8, 8, 8, 32})) << "counting starts again";
  EXPECT_EQ(scaler.skipped(), 1);
}

/// The whole loop in f32, where scaling by powers of two changes no bit.
TEST(LossScaler, WithClippingAndAccumulationNothingChanges) {
  const auto train = [](bool scaled) {
    std::vector<Named> p = testing::parameters({{4, 3}, {4}}, f32);
    optim::AdamW adam(p, {.lr = 0.05});
    LossScaler scaler({.enabled = scaled, .initial = 256, .interval = 2});
    for (int64_t step = 1; step <= 6; ++step) {
      adam.zero_grad();
      for (int64_t part = 0; part < 2; ++part)
        scaler.scale(mean(square(linear(testing::values({5, 3}, f32, part, step), p[0].value, p[1].value)))).backward();
      EXPECT_TRUE(scaler.unscale(adam));
      EXPECT_GT(optim::clip_grad_norm(p, 0.1), 0.1);
      EXPECT_TRUE(scaler.step(adam));
    }
    EXPECT_EQ(scaler.factor(), scaled ? 2048 : 1);
    return everything(adam);
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(LossScaler, OffItLeavesAllAsItIs) {
  std::vector<Named> p = testing::parameters({{2}}, f32);
  optim::SGD sgd(p, {.lr = 1});
  LossScaler scaler({.enabled = false});
  const Tensor loss = ones({}, bf16);
  EXPECT_EQ(scaler.scale(loss).ref().get(), loss.ref().get());
  set_all_gradients(p, kInfinity);
  EXPECT_TRUE(scaler.unscale(sgd));
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_EQ(p[0].value.to_vector<float>()[0], -kInfinity);
  EXPECT_EQ(scaler.skipped(), 0);
  EXPECT_EQ(scaler.factor(), 1);
}

TEST(LossScaler, StepsGoOnFromItsState) {
  const std::vector<float> gradients{1, 1, kInfinity, 2, 3, 1, kInfinity, 1, 1, 1};
  const auto train = [&](size_t stop) {
    std::vector<Named> p = testing::parameters({{3}}, f32);
    auto adam = std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.1});
    auto scaler = std::make_unique<LossScaler>(optim::LossScalerOptions{.initial = 4, .interval = 2});
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (i == stop) {
        const auto adam_state = adam->state_dict(), state = scaler->state_dict();
        adam = std::make_unique<optim::AdamW>(p, optim::AdamWOptions{});
        adam->load_state_dict(adam_state);
        scaler = std::make_unique<LossScaler>();
        scaler->load_state_dict(state);
      }
      set_all_gradients(p, gradients[i]);
      scaler->step(*adam);
    }
    std::vector<double> all = everything(*adam);
    for (const double v : testing::flat(scaler->state_dict())) all.push_back(v);
    return all;
  };
  const auto whole = train(gradients.size());
  for (size_t stop = 0; stop < gradients.size(); ++stop) EXPECT_EQ(train(stop), whole) << "stopped at " << stop;
}

TEST(LossScaler, RefusesAWrongState) {
  LossScaler scaler({.initial = 8});
  std::vector<Named> state = scaler.state_dict();
  state[0].value = scalar(0.0, f64);
  EXPECT_ERROR(scaler.load_state_dict(state), "the factor must be in [2^-16, 2^126], got 0");
  state[0].name = "scale";
  EXPECT_ERROR(scaler.load_state_dict(state), "factor is missing; scale is unexpected");
  state = scaler.state_dict();
  state.back().value = scalar(-1, i64);
  EXPECT_ERROR(scaler.load_state_dict(state), "skipped -1 must be at least 0");
  EXPECT_EQ(scaler.factor(), 8);
}

TEST(LossScaler, RefusesWhatCannotWork) {
  EXPECT_ERROR(LossScaler({.initial = 0}), "[loss_scaler] the factor must be in");
  EXPECT_ERROR(LossScaler({.growth = 0.5, .backoff = 1, .interval = 0}),
               "growth must be finite and at least 1, got 0.5; backoff must be in (0, 1), got 1; interval must be");
  std::vector<Named> p = testing::parameters({{2}}, f32), half = testing::parameters({{2}}, f16);
  optim::SGD sgd(p, {.lr = 1}), other(half, {.lr = 1});
  LossScaler scaler({.initial = 0x1p-15});
  EXPECT_ERROR(scaler.scale(ones({}, f16)), "wants a loss of f32 or f64 to scale, got f16");
  testing::set_gradients(half, 1);
  EXPECT_ERROR(scaler.step(other), "parameter p0 is f16: parameters stay f32");
  set_all_gradients(p, kInfinity);
  scaler.unscale(sgd);
  EXPECT_ERROR(scaler.unscale(sgd), "the gradients of sgd are unscaled already");
  EXPECT_ERROR(scaler.step(other), "was unscaled for another optimizer");
  EXPECT_FALSE(scaler.step(sgd));
  EXPECT_ERROR(scaler.step(sgd), "the gradients are not finite even with a factor of");
}

TEST(LossScaler, OtherProcessesDecideToo) {
  std::vector<Named> p = testing::parameters({{2}}, f32);
  optim::SGD sgd(p, {.lr = 1});
  double others = 1;
  LossScaler scaler({.initial = 4, .reduce = [&](double own) { return own + others; }});
  set_all_gradients(p, 4);
  EXPECT_TRUE(scaler.step(sgd));
  others = kInfinity;
  EXPECT_FALSE(scaler.step(sgd));
}

TEST(LossScaler, WithoutGradientsThereIsNothingToSkip) {
  std::vector<Named> p = testing::parameters({{2}}, f32);
  optim::SGD sgd(p, {.lr = 1});
  LossScaler scaler;
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_EQ(scaler.skipped(), 0);
}

}  // namespace
}  // namespace weft
