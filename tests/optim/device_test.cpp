// What a step does in one sweep, on the test device: clipping, copies, and lists that take several launches.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>

#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tensor/kernels.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using namespace optim;
using testing::test_device;

const std::vector<Shape> kSizes = {{3, 7}, {}, {0, 2}, {513}};

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Optimizer>(std::vector<Named>)> make;
};

std::vector<Kind> kinds() {
  return {
      {"adamw", [](std::vector<Named> p) { return std::make_unique<AdamW>(std::move(p), AdamWOptions{.lr = 0.01}); }},
      {"adam_amsgrad",
       [](std::vector<Named> p) {
         return std::make_unique<Adam>(std::move(p), AdamOptions{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true});
       }},
      {"sgd",
       [](std::vector<Named> p) {
         return std::make_unique<SGD>(std::move(p), SgdOptions{.lr = 0.1, .momentum = 0.9});
       }},
      {"rmsprop", [](std::vector<Named> p) { return std::make_unique<RMSprop>(std::move(p), RmspropOptions{}); }},
  };
}

void expect_near(const std::vector<Named>& a, const std::vector<Named>& b, double allowed) {
  const auto x = testing::flat(a), y = testing::flat(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], allowed) << i;
}

TEST(DeviceSteps, ClipAsTheyStep) {
  for (const Kind& kind : kinds())
    for (const double max_norm : {0.5, 1e9}) {
      SCOPED_TRACE(fmt::format("{} {}", kind.name, max_norm));
      std::vector<Named> a = testing::parameters(kSizes, f32, test_device()),
                         b = testing::parameters(kSizes, f32, test_device());
      const auto before = kind.make(a), within = kind.make(b);
      for (int t = 1; t <= 3; ++t) {
        testing::set_gradients(a, t);
        testing::set_gradients(b, t);
        clip_grad_norm(a, max_norm);
        before->step();
        if (t == 2)
          within->step({.max_norm = max_norm, .squared_norm = squared_grad_norm(b)});
        else
          within->step({.max_norm = max_norm});
      }
      expect_near(a, b, 2e-6);
    }
}

TEST(DeviceSteps, AdamLeavesTheGradientsItClips) {
  std::vector<Named> p = testing::parameters(kSizes, f32, test_device());
  testing::set_gradients(p, 1);
  const std::vector<float> before = p[0].value.grad().to_vector<float>();
  AdamW adamw(p);
  adamw.step({.max_norm = 0.1});
  EXPECT_EQ(p[0].value.grad().to_vector<float>(), before);
  EXPECT_ERROR(adamw.step({.max_norm = -1}), "max_norm must be at least 0, got -1");
}

/// A norm that is not finite clips nothing: other gradients stay as they are.
TEST(DeviceSteps, NormThatIsNotFiniteClipsNothing) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<Named> a = testing::parameters({{4}, {2}}, f32, test_device()),
                       b = testing::parameters({{4}, {2}}, f32, test_device());
    for (std::vector<Named>* list : {&a, &b}) {
      testing::set_gradients(*list, 1);
      (*list)[1].value.set_grad(from<float>({bad, 1}, {2}).to(test_device()));
    }
    AdamW plain(a), clipped(b);
    plain.step();
    clipped.step({.max_norm = 0.1});
    EXPECT_EQ(a[0].value.to_vector<float>(), b[0].value.to_vector<float>());
    EXPECT_FALSE(std::isfinite(clip_grad_norm_async(b, 0.1).item()));
    EXPECT_EQ(a[0].value.grad().to_vector<float>(), b[0].value.grad().to_vector<float>());
  }
}

TEST(DeviceSteps, ClipWithoutWaitingIsTheSame) {
  std::vector<Named> a = testing::parameters(kSizes, f32, test_device()),
                     b = testing::parameters(kSizes, f32, test_device());
  for (const double max_norm : {1e9, 3.0, 0.0}) {
    testing::set_gradients(a, 1);
    testing::set_gradients(b, 1);
    const double norm = clip_grad_norm(a, max_norm);
    const Tensor later = clip_grad_norm_async(b, max_norm);
    EXPECT_EQ(later.device(), test_device());
    EXPECT_EQ(later.sizes(), Shape{});
    EXPECT_EQ(later.item(), norm);
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(a[i].value.grad().to_vector<float>(), b[i].value.grad().to_vector<float>());
  }
  EXPECT_EQ(clip_grad_norm_async({}, 1).item(), 0);
  EXPECT_ERROR(clip_grad_norm_async(a, -1), "max_norm must be at least 0");
}

TEST(DeviceSteps, CopiesAreTheRoundedParameters) {
  for (const Kind& kind : kinds())
    for (const DType dtype : {bf16, f16}) {
      SCOPED_TRACE(fmt::format("{} {}", kind.name, name(dtype)));
      std::vector<Named> p = testing::parameters(kSizes, f32, test_device()),
                         q = testing::parameters(kSizes, f32, test_device());
      const auto optimizer = kind.make(p), without = kind.make(q);
      std::vector<Tensor> copies;
      for (size_t i = 1; i < p.size(); ++i) {  // the first has none
        copies.push_back(empty_like(p[i].value, dtype));
        optimizer->keep_copy(p[i].value, copies.back());
      }
      for (int t = 1; t <= 2; ++t) {
        testing::set_gradients(p, t);
        testing::set_gradients(q, t);
        const uint32_t version = copies[2].storage()->version();
        optimizer->step();
        without->step();
        EXPECT_NE(copies[2].storage()->version(), version);
        for (size_t i = 1; i < p.size(); ++i)
          EXPECT_EQ(copies[i - 1].to_vector<float>(), raw::to(p[i].value, dtype).to_vector<float>());
      }
      EXPECT_EQ(testing::flat(p), testing::flat(q));
      optimizer->keep_copy(p[3].value, {});
      testing::set_gradients(p, 3);
      optimizer->step();
      EXPECT_NE(copies[2].to_vector<float>(), raw::to(p[3].value, dtype).to_vector<float>());
    }
}

TEST(DeviceSteps, RefusesCopiesThatDoNotFit) {
  std::vector<Named> p = testing::parameters({{2, 3}}, f32, test_device()),
                     wide = testing::parameters({{2}}, f64, test_device());
  AdamW adamw(p), doubles(wide);
  EXPECT_ERROR(adamw.keep_copy(zeros({2, 3}), zeros({2, 3}, bf16)), "none of its parameters");
  EXPECT_ERROR(adamw.keep_copy(p[0].value, empty_like(p[0].value)), "a copy is bf16 or f16, got f32");
  EXPECT_ERROR(adamw.keep_copy(p[0].value, zeros({3, 2}, {bf16, test_device()})), "does not lie as its parameter");
  EXPECT_ERROR(doubles.keep_copy(wide[0].value, empty_like(wide[0].value, bf16)), "copies are kept of f32 parameters");
}

/// Lists that need several launches, tensors of several pieces, and memory that starts at any element.
TEST(DeviceSteps, ManyTensorsOfAnySizeAndStart) {
  std::vector<Named> here, there;
  for (int64_t k = 0; k < 100; ++k) {
    const int64_t n = k == 70 ? 2 * 8192 + 5 : k == 71 ? 8192 : k % 23;
    const Tensor whole = testing::values({n + 3}, f32, k, 0);
    const Tensor on_device = whole.to(test_device());
    for (auto* list : {&here, &there}) {
      Named p{fmt::format("p{}", k), raw::narrow(list == &here ? whole.clone() : on_device, 0, k % 4, n)};
      p.value.requires_grad_();
      list->push_back(p);
    }
  }
  AdamW a(here, {.lr = 0.01}), b(there, {.lr = 0.01});
  for (int t = 1; t <= 2; ++t) {
    testing::set_gradients(here, t);
    testing::set_gradients(there, t);
    EXPECT_NEAR(squared_grad_norm(there).item() / squared_grad_norm(here).item(), 1, 1e-12);
    a.step({.max_norm = 2});
    b.step({.max_norm = 2});
  }
  expect_near(here, there, 1e-6);
  EXPECT_NEAR(clip_grad_norm(there, 2), clip_grad_norm(here, 2), 1e-9);
  for (size_t k = 0; k < here.size(); ++k) {
    const auto x = here[k].value.grad().to_vector<double>(), y = there[k].value.grad().to_vector<double>();
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-6) << k << ", " << i;
  }
}

TEST(DeviceSteps, NormAndScaleOfMixedTypes) {
  std::vector<Tensor> here, there;
  for (const DType dtype : {f32, bf16, f64, f16, f32})
    for (const int64_t n : {5, 0, 300}) {
      here.push_back(testing::values({n}, dtype, n, static_cast<int64_t>(here.size())));
      there.push_back(here.back().clone().to(test_device()));
    }
  there.push_back(full({1}, 1e19, f32).to(test_device()));  // its square is beyond f32
  Tensor norm = empty({}, {f64, test_device()}), of_others = empty({}, {f64, test_device()});
  kernels::squared_norm(there, norm);
  EXPECT_NEAR(norm.item() / 1e38, 1, 1e-6);
  there.pop_back();
  kernels::squared_norm(there, of_others);
  double wanted = 0;
  for (const Tensor& x : here)
    for (const double v : x.to_vector<double>()) wanted += v * v;
  EXPECT_NEAR(of_others.item(), wanted, 1e-10 * wanted);

  kernels::scale(there, 0.5);
  for (size_t i = 0; i < here.size(); ++i) {
    const auto x = here[i].to_vector<double>(), y = there[i].to_vector<double>();
    for (size_t k = 0; k < x.size(); ++k) ASSERT_NEAR(y[k], x[k] / 2, 1e-3) << i;
  }
}

}  // namespace
}  // namespace weft
