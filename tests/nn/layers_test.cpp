// Layers: their shapes, defaults and errors. The arithmetic is the ops' and is tested there.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "tensor/random.h"

namespace weft {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

double largest(const Tensor& x) {
  double m = 0;
  for (double v : x.to_vector<double>()) m = std::max(m, std::fabs(v));
  return m;
}

TEST(Linear, ShapesAndDefaults) {
  nn::Linear layer({.in = 400, .out = 30});
  EXPECT_EQ(layer.weight.sizes(), Shape({30, 400}));
  EXPECT_EQ(layer(randn({2, 3, 400})).sizes(), Shape({2, 3, 30}));
  EXPECT_LE(largest(layer.weight), 0.05);
  EXPECT_GT(largest(layer.weight), 0.049);
  EXPECT_LE(largest(layer.bias), 0.05);
  EXPECT_GT(largest(layer.bias), 0.03);
  manual_seed(1);
  layer.reset_parameters();
  const std::vector<float> once = layer.weight.to_vector<float>();
  manual_seed(1);
  layer.reset_parameters();
  EXPECT_EQ(layer.weight.to_vector<float>(), once);
}

TEST(Linear, WithoutBiasAndWithActivation) {
  nn::Linear layer({.in = 2, .out = 2, .bias = false, .activation = Activation::relu});
  EXPECT_EQ(layer.parameters().size(), 1u);
  EXPECT_FALSE(layer.bias.defined());
  layer.load_state_dict({{"weight", from<float>({1, 0, 0, 1}, {2, 2})}});
  EXPECT_EQ(layer(from<float>({-3, 4}, {1, 2})).to_vector<float>(), (std::vector<float>{0, 4}));
}

TEST(Linear, RefusesSizesThatAreMissing) {
  EXPECT_NE(error_of([] { nn::Linear({.out = 3}); }).find("got 0 and 3"), std::string::npos);
  struct Net : nn::Module {
    nn::Linear& fc = add<nn::Linear>("fc", {.in = 3});
  };
  EXPECT_EQ(error_of([] { Net(); }).rfind("[linear] fc: ", 0), 0u);
}

TEST(Linear, OptionsMayComeFromAVariable) {
  const nn::Linear::Options options{.in = 3, .out = 2};
  nn::Linear copy(options);
  EXPECT_EQ(copy.options.out, 2);
  EXPECT_EQ(nn::make<nn::Linear>(options)->options.in, 3);
}

TEST(Conv2d, ShapesAndDefaults) {
  nn::Conv2d layer({.in = 6, .out = 4, .kernel = {3, 5}, .stride = 2, .padding = {1, 0}, .groups = 2});
  EXPECT_EQ(layer.weight.sizes(), Shape({4, 3, 3, 5}));
  EXPECT_EQ(layer(randn({2, 6, 9, 9})).sizes(), Shape({2, 4, 5, 3}));
  EXPECT_LE(largest(layer.weight), 1 / std::sqrt(45.0));
  EXPECT_NE(error_of([] { nn::Conv2d({.in = 6, .out = 4}); }).find(".kernel above 0"), std::string::npos);
  EXPECT_NE(error_of([] { nn::Conv2d({.in = 6, .out = 4, .kernel = 3, .groups = 4}); }).find("4 groups"), std::string::npos);
}

TEST(Conv1d, ShapesAndDefaults) {
  nn::Conv1d layer({.in = 6, .out = 4, .kernel = 3, .dilation = 2, .bias = false, .activation = Activation::relu});
  EXPECT_EQ(layer.weight.sizes(), Shape({4, 6, 3}));
  EXPECT_EQ(layer(randn({2, 6, 9})).sizes(), Shape({2, 4, 5}));
  EXPECT_EQ(layer.parameter_count(), 72);
  sum(layer(randn({2, 6, 9}))).backward();
  EXPECT_TRUE(layer.weight.grad().defined());
}

}  // namespace
}  // namespace weft
