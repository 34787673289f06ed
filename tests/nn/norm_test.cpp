// Normalisation layers and softmax modules: modes, state and errors. The arithmetic is tested with the ops.
#include "nn/norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "nn/activation.h"
#include "nn/sequential.h"
#include "tensor/random.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

/// Mean and variance of the values at [.., k].
void expect_normalised(const Tensor& x, double tolerance) {
  double mean = 0, square = 0;
  for (double v : x.to_vector<double>()) mean += v, square += v * v;
  const auto n = static_cast<double>(x.numel());
  EXPECT_NEAR(mean / n, 0, tolerance);
  EXPECT_NEAR(square / n, 1, tolerance);
}

TEST(BatchNorm, TrainingUpdatesRunningAveragesAndEvaluationUsesThem) {
  manual_seed(6);
  nn::BatchNorm1d layer({.channels = 1, .momentum = 0.5});
  expect_normalised(layer(from<float>({1, 3, 5, 7}, {4, 1})), 1e-4);
  EXPECT_NEAR(layer.running_mean.item(), 2, 1e-6);                    // half of 0, half of 4
  EXPECT_NEAR(layer.running_var.item(), 0.5 + 0.5 * 20.0 / 3, 1e-5);  // unbiased
  layer.eval();
  EXPECT_NEAR(layer(from<float>({2}, {1, 1})).item(), 0, 1e-6);  // one sample is enough here
  EXPECT_NEAR(layer.running_mean.item(), 2, 1e-6);
  EXPECT_EQ(layer.state_dict().size(), 4u);
  EXPECT_EQ(layer.parameters().size(), 2u);
  layer.reset_parameters();
  EXPECT_EQ(layer.running_mean.item(), 0);
  EXPECT_EQ(layer.running_var.item(), 1);
}

TEST(BatchNorm, ConvertsWithItsStatisticsInFullPrecision) {
  nn::BatchNorm1d layer({.channels = 3});
  for (const DType dtype : {bf16, f64, f32}) {
    layer.to(dtype);
    EXPECT_EQ(layer.weight.dtype(), dtype);
    EXPECT_EQ(layer.running_var.dtype(), dtype == bf16 ? f32 : dtype);
    EXPECT_EQ(layer(randn({4, 3}).to(dtype)).dtype(), dtype);
  }
}

TEST(BatchNorm, OneValuePerChannelNamesTheLayer) {
  struct Net : nn::Sequential {
    nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", {.channels = 3});
  } net;
  const std::string message = error_of([&] { net(ones({1, 3, 1, 1})); });
  EXPECT_NE(message.find("Net.norm"), std::string::npos) << message;
  EXPECT_NE(message.find("[1, 3, 1, 1]"), std::string::npos) << message;
  EXPECT_EQ(net.norm.running_mean.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(net(ones({1, 3, 2, 1})).sizes(), Shape({1, 3, 2, 1}));
  net.eval();
  EXPECT_EQ(net(ones({1, 3, 1, 1})).sizes(), Shape({1, 3, 1, 1}));
}

TEST(BatchNorm, WantsItsOwnDimensions) {
  nn::BatchNorm1d flat({.channels = 3});
  nn::BatchNorm2d image({.channels = 3});
  EXPECT_EQ(flat(randn({4, 3, 2})).sizes(), Shape({4, 3, 2}));
  EXPECT_EQ(error_of([&] {
              flat(randn({4, 3, 2, 2}));
            }),
            "[batch_norm1d] BatchNorm1d: wants 2 or 3 dimensions, the input is [4, 3, 2, 2]");
  EXPECT_EQ(error_of([&] {
              image(randn({4, 3}));
            }),
            "[batch_norm2d] BatchNorm2d: wants 4 dimensions, the input is [4, 3]");
  EXPECT_NE(error_of([] { nn::BatchNorm2d({}); }).find(".channels"), std::string::npos);
}

TEST(Norms, OverTheirDimensions) {
  manual_seed(7);
  const Tensor x = randn({2, 6, 5}) * 3 + 1;
  expect_normalised(nn::LayerNorm({.sizes = {5}})(x).select(0, 1).select(0, 2), 1e-4);
  expect_normalised(nn::LayerNorm({.sizes = {6, 5}})(x).select(0, 0), 1e-4);
  expect_normalised(nn::GroupNorm({.groups = 2, .channels = 6})(x).narrow(1, 3, 3).select(0, 1), 1e-4);
  const Tensor y = nn::RMSNorm({.sizes = {2}})(from<float>({3, 4}, {1, 2}));
  EXPECT_NEAR(y.to_vector<double>()[1], 4 / std::sqrt(12.5), 1e-5);
  EXPECT_EQ(nn::RMSNorm({.sizes = {2}}).parameters().size(), 1u);
  EXPECT_THROW(nn::GroupNorm({.groups = 4, .channels = 6}), Error);
  EXPECT_THROW(nn::LayerNorm({}), Error);
}

TEST(Softmax, Dimensions) {
  const Tensor x = from<float>({0, 0, 0, 0}, {1, 4});
  EXPECT_EQ(nn::Softmax()(x).to_vector<float>(), (std::vector<float>{0.25, 0.25, 0.25, 0.25}));
  EXPECT_EQ(nn::Softmax({.dim = 0})(x).to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));
  EXPECT_NEAR(nn::LogSoftmax()(x).to_vector<double>()[2], -std::log(4), 1e-6);
}

}  // namespace
}  // namespace weft
