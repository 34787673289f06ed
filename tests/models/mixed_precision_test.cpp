// Whole models in mixed precision.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pool.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/mnist.h"
#include "nn/norm.h"
#include "tensor/random.h"
#include "tensor/view.h"
#include "tests/distance.h"

namespace weft {
namespace {

/// A convolution, batch norm and a sum with the input.
struct Block : nn::Sequential {
  Block() {
    add<nn::Conv2d>("conv", {.in = 1, .out = 8, .kernel = 3, .padding = 1});
    auto& residual = add<nn::Residual>("residual");
    residual.add<nn::BatchNorm2d>("norm", {.channels = 8});
    residual.add<nn::Conv2d>("conv", {.in = 8, .out = 8, .kernel = 3, .padding = 1, .activation = Activation::relu});
    add("pool", [](const Tensor& x) { return global_avg_pool(x); });
    add<nn::LayerNorm>("norm", {.sizes = {8}});
    add<nn::Linear>("fc", {.in = 8, .out = 10});
  }
};

/// Loss and gradients near those of f32, and gradients of f32.
template <class Net>
void expect_near_single(DType half, double loss_error, double gradient_error) {
  manual_seed(4);
  Net net;
  net.eval();  // no dropout
  const Tensor x = randn({8, 1, 28, 28}), labels = randint(0, 10, {8});
  const auto run = [&](DType dtype) {
    net.zero_grad();
    const Autocast guard(dtype);
    const Tensor logits = net(x), loss = cross_entropy(logits, labels);
    EXPECT_EQ(logits.dtype(), dtype);
    EXPECT_EQ(loss.dtype(), f32);
    loss.backward();
    std::vector<Tensor> out{loss};
    for (const Named& p : net.parameters()) {
      EXPECT_EQ(p.value.dtype(), f32);
      EXPECT_EQ(p.value.grad().dtype(), f32) << p.name;
      out.push_back(raw::clone(p.value.grad()));
    }
    return out;
  };
  const std::vector<Tensor> wanted = run(f32), got = run(half);
  EXPECT_LT(distance(got[0], wanted[0]), loss_error);
  for (size_t i = 1; i < got.size(); ++i)
    EXPECT_LT(distance(got[i], wanted[i]), gradient_error) << net.parameters()[i - 1].name;
}

class MixedModels : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Halves, MixedModels, testing::Values(bf16, f16),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(MixedModels, AreNearSinglePrecision) {
  const DType half = GetParam();
  const double loss = half == bf16 ? 0.01 : 0.002, gradient = half == bf16 ? 0.15 : 0.05;
  expect_near_single<models::MnistNet>(half, loss, gradient);
  expect_near_single<models::LeNet5>(half, loss, gradient);
  expect_near_single<models::MLP>(half, loss, gradient);
  expect_near_single<Block>(half, loss, gradient);
}

}  // namespace
}  // namespace weft
