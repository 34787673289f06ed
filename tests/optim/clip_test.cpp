// Clipping of gradients, with the overflows, NaNs and empty lists that it meets.
#include "optim/clip.h"

#include <gtest/gtest.h>

#include <limits>

#include "tensor/threads.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using optim::clip_grad_norm;
using optim::clip_grad_value;

std::vector<Named> with_gradients(const std::vector<Tensor>& grads) {
  std::vector<Named> out;
  for (const Tensor& g : grads) {
    out.push_back(testing::parameter(fmt::format("p{}", out.size()), zeros(g.sizes(), g.dtype())));
    out.back().value.set_grad(g);
  }
  return out;
}

/// Case 27, the overflow: squares that f32 cannot hold.
TEST(Clip, NormIsComputedInDouble) {
  std::vector<Tensor> grads;
  for (int i = 0; i < 128; ++i) grads.push_back(full({1}, 1e19));
  const std::vector<Named> p = with_gradients(grads);
  EXPECT_NEAR(clip_grad_norm(p, 2), 1.1313708e20, 1e14);
  for (const Named& x : p) EXPECT_NEAR(x.value.grad().item(), 0.1767767, 1e-6);
}

/// Case 27, not finite: the parameter is named, and no gradient has changed.
TEST(Clip, NonFiniteNamesTheParameterAndChangesNothing) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<Named> p = with_gradients({full({3}, 5.0), from<float>({1, bad}, {2}), full({1}, 7.0)});
    std::string message;
    try {
      clip_grad_norm(p, 1);
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("gradient of p1 [2] is not finite"), std::string::npos) << message;
    EXPECT_FALSE(std::isfinite(clip_grad_norm(p, 1, {.error_if_nonfinite = false})));
    EXPECT_EQ(p[0].value.grad().to_vector<float>(), (std::vector<float>{5, 5, 5}));
    EXPECT_EQ(p[1].value.grad().to_vector<float>()[0], 1);
    EXPECT_EQ(p[2].value.grad().item(), 7);
  }
}

/// Case 27, nothing there: 0, and the other processes are still met.
TEST(Clip, EmptyIsZeroAndStillReduces) {
  EXPECT_EQ(clip_grad_norm({}, 1), 0);
  EXPECT_EQ(clip_grad_norm(testing::parameters({{2}}), 1), 0);  // no gradients
  EXPECT_EQ(clip_grad_norm(with_gradients({zeros({0, 3})}), 1), 0);
  int calls = 0;
  const auto others = [&](double own) { return ++calls, own + 16; };
  EXPECT_EQ(clip_grad_norm({}, 1, {.reduce = others}), 4);
  const std::vector<Named> p = with_gradients({full({1}, 3.0)});
  EXPECT_EQ(clip_grad_norm(p, 1, {.reduce = others}), 5);
  EXPECT_NEAR(p[0].value.grad().item(), 0.6, 1e-6);
  EXPECT_EQ(calls, 2);
}

TEST(Clip, ScalesOnlyWhatIsTooLong) {
  const std::vector<Named> p = with_gradients({full({1}, 3.0, f64), full({1}, -4.0, f64)});
  EXPECT_EQ(clip_grad_norm(p, 5.1), 5);
  EXPECT_EQ(p[1].value.grad().item(), -4);
  EXPECT_EQ(clip_grad_norm(p, 1), 5);
  EXPECT_NEAR(p[1].value.grad().item(), -0.8, 1e-6);
  EXPECT_NEAR(clip_grad_norm(p, 0), 1, 1e-6);
  EXPECT_EQ(p[0].value.grad().item(), 0);
  EXPECT_THROW(clip_grad_norm(p, -1), Error);
}

TEST(Clip, MixedTypesLayoutsAndSharedGradients) {
  const Tensor shared = full({2}, 1.0);
  const Tensor strided = raw::narrow(full({2, 4}, 1.0), 1, 0, 2), expanded = raw::expand(full({1}, 1.0), {4});
  const std::vector<Named> p = with_gradients({shared, shared, strided, expanded, raw::to(full({4}, 1.0), bf16)});
  EXPECT_EQ(clip_grad_norm(p, 2), 4);
  for (const Named& x : p)
    for (double v : x.value.grad().to_vector<double>()) EXPECT_NEAR(v, 0.5, 1e-6) << x.name;
}

TEST(Clip, NormIsTheSameForAnyNumberOfThreads) {
  const int threads = num_threads();
  const std::vector<Named> p = with_gradients(
      {testing::values({40013}, f32, 0, 1), testing::values({5}, f64, 1, 1), testing::values({333, 77}, f32, 2, 1)});
  double wanted = 0;
  for (const Named& x : p)
    for (double v : x.value.grad().to_vector<double>()) wanted += v * v;
  set_num_threads(1);
  const double one = clip_grad_norm(p, 1e9);
  set_num_threads(2);
  const double two = clip_grad_norm(p, 1e9);
  set_num_threads(threads);
  EXPECT_EQ(one, two);
  EXPECT_NEAR(one, std::sqrt(wanted), 1e-10);
}

TEST(Clip, ValueLimitsEachElement) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Named> p = with_gradients({from<float>({-3, -0.5, 0.25, 9, nan}, {5})});
  const uint32_t version = p[0].value.grad().storage()->version();
  clip_grad_value(p, 0.5);
  const std::vector<float> got = p[0].value.grad().to_vector<float>();
  EXPECT_EQ(std::vector<float>(got.begin(), got.begin() + 4), (std::vector<float>{-0.5, -0.5, 0.25, 0.5}));
  EXPECT_TRUE(std::isnan(got[4]));
  EXPECT_NE(p[0].value.grad().storage()->version(), version);
  EXPECT_THROW(clip_grad_value(p, -1), Error);
}

}  // namespace
}  // namespace weft
