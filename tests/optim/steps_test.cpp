// Three steps of each optimizer, the learning rate changed before the last, against the formulas in plain loops.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tensor/threads.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using namespace optim;
using testing::parameter;
using testing::value_at;

/// One element's history: f(p, g, step, lr) returns the new p and keeps what it needs.
using Formula = std::function<double(double p, double g, int t, double lr)>;

struct StepCase {
  const char* name;
  double lr;
  std::function<std::unique_ptr<Optimizer>(std::vector<Named>)> make;
  std::function<Formula()> formula;
};

template <class O, class Options>
auto maker(const Options& options) {
  return [options](std::vector<Named> p) { return std::make_unique<O>(std::move(p), options); };
}

std::function<Formula()> sgd(double momentum, double dampening, double decay, bool nesterov) {
  return [=] {
    return [=, b = 0.0](double p, double g, int t, double lr) mutable {
      g += decay * p;
      b = t == 1 ? g : momentum * b + (1 - dampening) * g;
      if (momentum == 0) return p - lr * g;
      return p - lr * (nesterov ? g + momentum * b : b);
    };
  };
}

std::function<Formula()> adam(double b1, double b2, double eps, double l2, double decoupled, bool amsgrad) {
  return [=] {
    return [=, m = 0.0, v = 0.0, top = 0.0](double p, double g, int t, double lr) mutable {
      p -= lr * decoupled * p;
      g += l2 * p;
      m = b1 * m + (1 - b1) * g;
      v = b2 * v + (1 - b2) * g * g;
      top = std::max(top, v);
      const double mean = m / (1 - std::pow(b1, t)), square = (amsgrad ? top : v) / (1 - std::pow(b2, t));
      return p - lr * mean / (std::sqrt(square) + eps);
    };
  };
}

std::function<Formula()> rmsprop(double alpha, double eps, double decay, double momentum, bool centered) {
  return [=] {
    return [=, v = 0.0, mean = 0.0, b = 0.0](double p, double g, int, double lr) mutable {
      g += decay * p;
      v = alpha * v + (1 - alpha) * g * g;
      mean = alpha * mean + (1 - alpha) * g;
      b = momentum * b + g / (std::sqrt(centered ? v - mean * mean : v) + eps);
      return p - lr * b;
    };
  };
}

std::function<Formula()> adagrad(double lr_decay, double decay, double initial, double eps) {
  return [=] {
    return [=, s = initial](double p, double g, int t, double lr) mutable {
      g += decay * p;
      s += g * g;
      return p - lr / (1 + (t - 1) * lr_decay) * g / (std::sqrt(s) + eps);
    };
  };
}

std::function<Formula()> adadelta(double rho, double eps, double decay) {
  return [=] {
    return [=, v = 0.0, u = 0.0](double p, double g, int, double lr) mutable {
      g += decay * p;
      v = rho * v + (1 - rho) * g * g;
      const double d = g * std::sqrt(u + eps) / std::sqrt(v + eps);
      u = rho * u + (1 - rho) * d * d;
      return p - lr * d;
    };
  };
}

std::vector<StepCase> step_cases() {
  return {
      {"sgd", 0.1, maker<SGD>(SgdOptions{.lr = 0.1}), sgd(0, 0, 0, false)},
      {"sgd_decay", 0.1, maker<SGD>(SgdOptions{.lr = 0.1, .weight_decay = 0.3}), sgd(0, 0, 0.3, false)},
      {"sgd_momentum", 0.1, maker<SGD>(SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.2}),
       sgd(0.9, 0, 0.2, false)},
      {"sgd_dampening", 0.1, maker<SGD>(SgdOptions{.lr = 0.1, .momentum = 0.8, .dampening = 0.4}),
       sgd(0.8, 0.4, 0, false)},
      {"sgd_nesterov", 0.1, maker<SGD>(SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
       sgd(0.9, 0, 0.1, true)},
      {"adam", 0.01, maker<Adam>(AdamOptions{.lr = 0.01}), adam(0.9, 0.999, 1e-8, 0, 0, false)},
      {"adam_l2", 0.01,
       maker<Adam>(AdamOptions{.lr = 0.01, .beta1 = 0.7, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.5}),
       adam(0.7, 0.9, 1e-3, 0.5, 0, false)},
      {"adam_amsgrad", 0.01, maker<Adam>(AdamOptions{.lr = 0.01, .beta2 = 0.5, .amsgrad = true}),
       adam(0.9, 0.5, 1e-8, 0, 0, true)},
      {"adamw", 0.01, maker<AdamW>(AdamWOptions{.lr = 0.01}), adam(0.9, 0.999, 1e-8, 0, 0.01, false)},
      {"adamw_amsgrad", 0.01,
       maker<AdamW>(AdamWOptions{.lr = 0.01, .beta1 = 0.8, .beta2 = 0.6, .weight_decay = 0.5, .amsgrad = true}),
       adam(0.8, 0.6, 1e-8, 0, 0.5, true)},
      {"rmsprop", 0.01, maker<RMSprop>(RmspropOptions{}), rmsprop(0.99, 1e-8, 0, 0, false)},
      {"rmsprop_momentum", 0.01, maker<RMSprop>(RmspropOptions{.alpha = 0.9, .weight_decay = 0.1, .momentum = 0.8}),
       rmsprop(0.9, 1e-8, 0.1, 0.8, false)},
      {"rmsprop_centered", 0.01, maker<RMSprop>(RmspropOptions{.alpha = 0.8, .eps = 1e-4, .centered = true}),
       rmsprop(0.8, 1e-4, 0, 0, true)},
      {"rmsprop_all", 0.01,
       maker<RMSprop>(RmspropOptions{.alpha = 0.8, .weight_decay = 0.1, .momentum = 0.5, .centered = true}),
       rmsprop(0.8, 1e-8, 0.1, 0.5, true)},
      {"adagrad", 0.01, maker<Adagrad>(AdagradOptions{}), adagrad(0, 0, 0, 1e-10)},
      {"adagrad_all", 0.01,
       maker<Adagrad>(
           AdagradOptions{.lr_decay = 0.3, .weight_decay = 0.2, .initial_accumulator_value = 0.1, .eps = 1e-3}),
       adagrad(0.3, 0.2, 0.1, 1e-3)},
      {"adadelta", 1, maker<Adadelta>(AdadeltaOptions{}), adadelta(0.9, 1e-6, 0)},
      {"adadelta_decay", 1, maker<Adadelta>(AdadeltaOptions{.rho = 0.7, .eps = 1e-3, .weight_decay = 0.2}),
       adadelta(0.7, 1e-3, 0.2)},
  };
}

/// Three steps; the third with a third of the learning rate.
void three_steps(Optimizer& optimizer, std::vector<Named>& parameters, double lr) {
  for (int t = 1; t <= 3; ++t) {
    if (t == 3) optimizer.set_lr(lr / 3);
    testing::set_gradients(parameters, t);
    optimizer.step();
  }
}

TEST(Optimizers, ThreeStepsOnADeviceAreTheFormulas) {
  const std::vector<Shape> sizes = {{3, 4}, {}, {0, 2}, {67}};
  for (const StepCase& c : step_cases())
    for (const DType dtype : {f64, f32}) {
      SCOPED_TRACE(std::string(c.name) + " " + std::string(name(dtype)));
      std::vector<Named> parameters = testing::parameters(sizes, dtype, testing::test_device());
      const auto optimizer = c.make(parameters);
      EXPECT_EQ(optimizer->lr(), c.lr);
      three_steps(*optimizer, parameters, c.lr);
      for (size_t k = 0; k < sizes.size(); ++k) {
        const std::vector<double> got = parameters[k].value.to_vector<double>();
        for (size_t i = 0; i < got.size(); ++i) {
          const Formula f = c.formula();
          const auto at = [&](int t) { return value_at(static_cast<int64_t>(i), static_cast<int64_t>(k), t); };
          double p = at(0);
          for (int t = 1; t <= 3; ++t) p = f(p, at(t), t, t == 3 ? c.lr / 3 : c.lr);
          ASSERT_NEAR(got[i], p, dtype == f64 ? 1e-13 : 2e-6) << "parameter " << k << ", element " << i;
        }
      }
    }
}

/// 16-bit parameters are rounded once a step; their moments are f32.
TEST(Optimizers, SixteenBitParametersOnADeviceKeepMomentsInFloat) {
  std::vector<Named> wide = testing::parameters({{40}}, f32, testing::test_device()),
                     narrow = {parameter("p0", raw::to(wide[0].value, bf16))};
  AdamW a(wide, {.lr = 0.1}), b(narrow, {.lr = 0.1});
  testing::set_gradients(wide, 1);
  testing::set_gradients(narrow, 1);
  a.step();
  b.step();
  EXPECT_EQ(b.state_dict().back().value.dtype(), f32);
  const auto x = testing::flat(wide), y = testing::flat(narrow);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 0.01) << i;
}

TEST(Optimizers, ResultsDoNotDependOnThreads) {
  const int threads = num_threads();
  const std::vector<Shape> sizes = {{20001}, {3}, {57, 29}};
  for (const StepCase& c : step_cases()) {
    std::vector<std::vector<double>> results;
    for (const int n : {1, 2}) {
      set_num_threads(n);
      std::vector<Named> parameters = testing::parameters(sizes, f32);
      const auto optimizer = c.make(parameters);
      three_steps(*optimizer, parameters, c.lr);
      results.push_back(testing::flat(parameters));
    }
    set_num_threads(threads);
    EXPECT_EQ(results[0], results[1]) << c.name;
  }
}

/// Case 29: without gradient nothing moves, state included; a gradient of zeros lets moments decay and the update
/// happen.
TEST(Optimizers, AbsentGradientIsUntouchedAndZeroGradientDecays) {
  for (const StepCase& c : step_cases()) {
    SCOPED_TRACE(c.name);
    std::vector<Named> parameters = testing::parameters({{5}, {4}});
    const auto optimizer = c.make(parameters);
    testing::set_gradients(parameters, 1);
    optimizer->step();
    const auto own_state = [&] {  // of p0, copied
      std::vector<Named> out;
      for (const Named& x : optimizer->state_dict())
        if (x.name.ends_with(".p0")) out.push_back({x.name, raw::clone(x.value)});
      return out;
    };
    const std::vector<double> p = parameters[0].value.to_vector<double>(), state = testing::flat(own_state());

    parameters[0].value.set_grad({});
    optimizer->step();
    EXPECT_EQ(parameters[0].value.to_vector<double>(), p);
    EXPECT_EQ(testing::flat(own_state()), state);

    parameters[0].value.set_grad(zeros({5}, f64));
    optimizer->step();
    EXPECT_NE(testing::flat(own_state()), state);
  }
  std::vector<Named> one = testing::parameters({{3}});
  SGD momentum(one, {.lr = 1, .momentum = 0.5});
  one[0].value.set_grad(ones({3}, f64));
  momentum.step();
  const double after = one[0].value.to_vector<double>()[0];
  one[0].value.set_grad(zeros({3}, f64));
  momentum.step();
  EXPECT_DOUBLE_EQ(one[0].value.to_vector<double>()[0], after - 0.5);  // the buffer, halved, still acts
  AdamW decoupled(one, {.lr = 0.1, .weight_decay = 0.5});
  const double before = one[0].value.to_vector<double>()[1];
  decoupled.step();
  EXPECT_DOUBLE_EQ(one[0].value.to_vector<double>()[1], before * 0.95);
}

/// A parameter whose first gradient comes late has bias corrections of its own.
TEST(Optimizers, EachParameterCountsItsOwnSteps) {
  std::vector<Named> parameters = testing::parameters({{2}, {2}});
  AdamW adamw(parameters, {.lr = 0.1, .weight_decay = 0});
  parameters[0].value.set_grad(ones({2}, f64));
  adamw.step();
  adamw.step();
  const double before = parameters[1].value.to_vector<double>()[0];
  parameters[1].value.set_grad(full({2}, 3.0, f64));
  adamw.step();
  EXPECT_NEAR(parameters[1].value.to_vector<double>()[0], before - 0.1, 1e-8);  // a first step has length lr
}

TEST(Optimizers, AnyDenseLayoutAndAnyGradient) {
  const Tensor start = testing::values({2, 3, 4, 5}, f64, 0, 0), gradient = testing::values({2, 3, 4, 5}, f64, 0, 1);
  const Tensor other = raw::channels_last(gradient);
  Tensor expanded = raw::expand(scalar(0.25, f64), {2, 3, 4, 5});
  for (const Tensor& g : {gradient, other, expanded}) {
    std::vector<Named> plain = {parameter("w", start)}, last = {parameter("w", raw::channels_last(start))};
    ASSERT_TRUE(last[0].value.is_channels_last());
    AdamW a(plain), b(last);
    for (int t = 0; t < 2; ++t) {
      plain[0].value.set_grad(raw::contiguous(g));
      last[0].value.set_grad(g);
      a.step();
      b.step();
    }
    EXPECT_EQ(testing::flat(plain), testing::flat(last));
    EXPECT_TRUE(last[0].value.is_channels_last());
  }
}

TEST(Optimizers, GroupsHaveOptionsOfTheirOwn) {
  std::vector<Named> parameters = testing::parameters({{4}, {4}});
  const auto before = testing::flat(parameters);
  AdamW adamw(std::vector<Group<AdamWOptions>>{{{parameters[0]}, {.lr = 0.1, .weight_decay = 0.5}},
                                               {{parameters[1]}, {.lr = 0.2, .weight_decay = 0}}});
  for (Named& p : parameters) p.value.set_grad(zeros({4}, f64));
  adamw.step();
  const auto after = testing::flat(parameters);
  for (size_t i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(after[i], before[i] * 0.95);
  for (size_t i = 4; i < 8; ++i) EXPECT_EQ(after[i], before[i]);
  adamw.set_lr(1, 0.3);
  EXPECT_EQ(adamw.lr(), 0.1);
  EXPECT_EQ(adamw.lr(1), 0.3);
  EXPECT_EQ(adamw.groups(), 2u);
  EXPECT_EQ(adamw.parameters().size(), 2u);
  adamw.set_lr(0);
  testing::set_gradients(parameters, 1);
  adamw.step();
  EXPECT_EQ(testing::flat(parameters), after);  // nothing moves at 0
}

TEST(Optimizers, StepIsSeenBySavedTensorsAndRecordsNothing) {
  std::vector<Named> parameters = testing::parameters({{3}});
  SGD sgd(parameters, {.lr = 0.1});
  Tensor& p = parameters[0].value;
  const Tensor loss = sum(p * p);
  p.set_grad(ones({3}, f64));
  sgd.step();
  EXPECT_TRUE(p.is_leaf());
  EXPECT_THROW(loss.backward(), Error);  // p changed since it was saved
  sgd.zero_grad();
  EXPECT_FALSE(p.grad().defined());
  sum(p * p).backward();
  EXPECT_TRUE(p.grad().defined());
}

TEST(Optimizers, ZeroGradDropsOrKeeps) {
  std::vector<Named> parameters = testing::parameters({{3}, {2}});
  SGD sgd(parameters);
  const Tensor g = ones({3}, f64);
  parameters[0].value.set_grad(g);
  sgd.zero_grad({.keep = true});
  EXPECT_EQ(parameters[0].value.grad().ref(), g.ref());
  EXPECT_EQ(g.to_vector<double>(), (std::vector<double>{0, 0, 0}));
  EXPECT_FALSE(parameters[1].value.grad().defined());
  sgd.zero_grad();
  EXPECT_FALSE(parameters[0].value.grad().defined());
}

TEST(Optimizers, EmptyListIsANoOp) {
  AdamW adamw(std::vector<Named>{}, {.lr = 0.5});
  adamw.step();
  adamw.zero_grad();
  EXPECT_EQ(adamw.lr(), 0.5);
  adamw.load_state_dict(adamw.state_dict());
  SGD no_groups(std::vector<Group<SgdOptions>>{});
  no_groups.set_lr(0.1);
  no_groups.step();
  no_groups.load_state_dict(no_groups.state_dict());
}

TEST(Optimizers, FrozenParametersWait) {
  Named p{"p", ones({2})};
  AdamW adamw({p});
  adamw.step();
  EXPECT_EQ(p.value.to_vector<float>(), (std::vector<float>{1, 1}));
}

/// Case 21: a padding row that starts as zeros and gets no gradient stays exactly zero under decoupled and L2 decay.
TEST(Optimizers, PaddingRowStaysZero) {
  for (const StepCase& c : step_cases()) {
    Tensor start = testing::values({6, 3}, f32, 0, 0);
    Tensor row = raw::select(start, 0, 2);
    row.zero_();
    std::vector<Named> parameters = {parameter("embedding.weight", start)};
    const auto optimizer = c.make(parameters);
    for (int t = 1; t <= 20; ++t) {
      Tensor g = testing::values({6, 3}, f32, 0, t), grad_row = raw::select(g, 0, 2);
      grad_row.zero_();
      parameters[0].value.set_grad(g);
      optimizer->step();
    }
    EXPECT_EQ(raw::select(parameters[0].value, 0, 2).to_vector<float>(), (std::vector<float>{0, 0, 0})) << c.name;
    EXPECT_NE(raw::select(parameters[0].value, 0, 1).to_vector<float>(), raw::select(start, 0, 1).to_vector<float>());
  }
}

TEST(Optimizers, RefusesBadParametersAndValues) {
  const std::vector<Named> good = testing::parameters({{2}});
  const auto refused = [&](std::vector<Named> list) { return error_of([&] { AdamW adamw(std::move(list)); }); };
  EXPECT_NE(refused({good[0], {"again", good[0].value}}).find("p0 and again are the same memory"), std::string::npos);
  EXPECT_NE(refused({good[0], {"view", good[0].value.detach()}}).find("the same memory"), std::string::npos);
  EXPECT_NE(refused({good[0], {"p0", ones({2})}}).find("two parameters have the name p0"), std::string::npos);
  EXPECT_NE(refused({{"x", Tensor()}}).find("x is undefined"), std::string::npos);
  EXPECT_NE(refused({{"x", arange(3)}}).find("x is i64"), std::string::npos);
  EXPECT_NE(refused({{"x", good[0].value * 2}}).find("x is the result of affine"), std::string::npos);
  EXPECT_NE(refused({{"x", raw::narrow(ones({4, 4}), 1, 0, 2)}}).find("x [4, 2] is a view with gaps"),
            std::string::npos);

  const Tensor buffer = ones({6});  // parts of one buffer are not the same memory
  EXPECT_EQ(refused({{"a", raw::narrow(buffer, 0, 0, 3)}, {"b", raw::narrow(buffer, 0, 3, 3)}}), "no error");

  const auto values = [&](const AdamWOptions& o) { return error_of([&] { AdamW adamw(good, o); }); };
  EXPECT_NE(values({.lr = -1}).find("[adamw] lr must be finite and at least 0, got -1"), std::string::npos);
  EXPECT_NE(values({.lr = std::nan("")}).find("lr"), std::string::npos);
  EXPECT_NE(values({.beta1 = 1}).find("beta1 must be in [0, 1), got 1"), std::string::npos);
  EXPECT_NE(values({.beta2 = -0.1}).find("beta2"), std::string::npos);
  EXPECT_NE(values({.eps = -1e-8}).find("eps"), std::string::npos);
  EXPECT_NE(values({.weight_decay = -1}).find("weight_decay"), std::string::npos);
  EXPECT_NE(error_of([&] { SGD sgd(good, {.nesterov = true}); }).find("nesterov"), std::string::npos);
  AdamW adamw(good);
  EXPECT_THROW(adamw.set_lr(-1), Error);
  EXPECT_THROW(adamw.lr(1), Error);
}

}  // namespace
}  // namespace weft
