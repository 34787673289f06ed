// Layers: their shapes, defaults and errors. The arithmetic is the ops' and is tested there.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "nn/activation.h"
#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/init.h"
#include "nn/linear.h"
#include "nn/loss.h"
#include "nn/pool.h"
#include "nn/sequential.h"
#include "tensor/random.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

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
  EXPECT_NE(error_of([] { nn::Conv2d({.in = 6, .out = 4, .kernel = 3, .groups = 4}); }).find("4 groups"),
            std::string::npos);
}

TEST(Conv1d, ShapesAndDefaults) {
  nn::Conv1d layer({.in = 6, .out = 4, .kernel = 3, .dilation = 2, .bias = false, .activation = Activation::relu});
  EXPECT_EQ(layer.weight.sizes(), Shape({4, 6, 3}));
  EXPECT_EQ(layer(randn({2, 6, 9})).sizes(), Shape({2, 4, 5}));
  EXPECT_EQ(layer.parameter_count(), 72);
  sum(layer(randn({2, 6, 9}))).backward();
  EXPECT_TRUE(layer.weight.grad().defined());
}

TEST(Embedding, PaddingRowIsZeroAfterEveryInitialisation) {
  struct Net : nn::Module {
    nn::Embedding& words = add<nn::Embedding>("words", {.rows = 5, .width = 3, .padding_idx = 1});
    Tensor forward(const Tensor& ids) override { return words(ids); }
  } net;
  const auto expect_padding = [&](const char* when) {
    const std::vector<float> v = net.words.weight.to_vector<float>();
    for (size_t i = 0; i < v.size(); ++i) EXPECT_EQ(v[i] == 0, i / 3 == 1) << when << ", element " << i;
  };
  expect_padding("new");
  net.reset_parameters();
  expect_padding("reset");
  net.init([](const std::string&, Tensor& x) { nn::init::uniform(x, 1, 2); });
  expect_padding("init of the whole");
  net.words.init([](const std::string&, Tensor& x) { nn::init::normal(x, 9, 0.02); });
  expect_padding("init of the layer");

  sum(net(from<int64_t>({0, 1, 1, 4}, {2, 2}))).backward();
  EXPECT_EQ(net.words.weight.grad().to_vector<float>(),
            (std::vector<float>{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_TRUE(net.words.weight.is_leaf());
}

TEST(Embedding, ErrorsNameTheLayer) {
  EXPECT_NE(error_of([] { nn::Embedding({.rows = 5, .width = 3, .padding_idx = 5}); }).find("padding_idx 5"),
            std::string::npos);
  nn::Sequential net(nn::make<nn::Embedding>({.rows = 5, .width = 3}));
  EXPECT_EQ(error_of([&] { net(from<int64_t>({5}, {1})); }).rfind("[embedding] Sequential.0: ", 0), 0u);
}

TEST(Dropout, ActsInTrainingOnly) {
  nn::Dropout layer({.p = 0.25});
  const Tensor x = ones({1000});
  const Tensor y = layer(x);
  const double kept = sum(y).item() * 0.75;
  EXPECT_NEAR(kept, 750, 5 * std::sqrt(1000 * 0.25 * 0.75));
  layer.eval();
  EXPECT_EQ(layer(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_THROW(nn::Dropout({.p = 1.5}), Error);
}

TEST(Pool, Shapes) {
  const Tensor image = randn({2, 3, 8, 6}), sequence = randn({2, 3, 9});
  EXPECT_EQ(nn::MaxPool2d({.kernel = {2, 3}})(image).sizes(), Shape({2, 3, 4, 2}));
  EXPECT_EQ(nn::AvgPool2d({.kernel = 3, .stride = 2, .padding = 1})(image).sizes(), Shape({2, 3, 4, 3}));
  EXPECT_EQ(nn::MaxPool1d({.kernel = 2, .ceil_mode = true})(sequence).sizes(), Shape({2, 3, 5}));
  EXPECT_EQ(nn::AvgPool1d({.kernel = 3})(sequence).sizes(), Shape({2, 3, 3}));
  EXPECT_EQ(nn::GlobalAvgPool()(image).sizes(), Shape({2, 3}));
  EXPECT_EQ(nn::GlobalMaxPool()(sequence).sizes(), Shape({2, 3}));
  EXPECT_EQ(nn::Flatten()(image).sizes(), Shape({2, 144}));
  EXPECT_EQ(nn::Flatten({.first = 0, .last = 1})(image).sizes(), Shape({6, 8, 6}));
}

TEST(Pool, FusedReluHasTheSameGradient) {
  manual_seed(8);
  Tensor a = randn({2, 3, 6, 6}).requires_grad_(), b = a.detach().clone().requires_grad_();
  const Tensor weight = randn({2, 3, 3, 3});
  sum(nn::MaxPool2d({.activation = Activation::relu})(a) * weight).backward();
  sum(relu(nn::MaxPool2d()(b)) * weight).backward();
  EXPECT_EQ(a.grad().to_vector<float>(), b.grad().to_vector<float>());
  EXPECT_GT(largest(a.grad()), 0);
  const auto gelu_pool = nn::MaxPool2d({.activation = Activation::gelu})(b.detach());
  EXPECT_EQ(gelu_pool.to_vector<float>(), gelu(nn::MaxPool2d()(b.detach())).to_vector<float>());
}

TEST(Activations, CallTheirOps) {
  const Tensor x = randn({2, 5});
  const auto same = [](const Tensor& a, const Tensor& b) { return a.to_vector<float>() == b.to_vector<float>(); };
  EXPECT_TRUE(same(nn::ReLU()(x), relu(x)));
  EXPECT_TRUE(same(nn::LeakyReLU({.slope = 0.3})(x), leaky_relu(x, 0.3)));
  EXPECT_TRUE(same(nn::GELU()(x), gelu(x)));
  EXPECT_TRUE(same(nn::GELU({.tanh = true})(x), gelu_tanh(x)));
  EXPECT_TRUE(same(nn::SiLU()(x), silu(x)));
  EXPECT_TRUE(same(nn::Tanh()(x), tanh(x)));
  EXPECT_TRUE(same(nn::Sigmoid()(x), sigmoid(x)));
}

TEST(Losses, AreThereUnderTheNameOfTrainingCode) {
  const Tensor logits = zeros({2, 4}), labels = from<int64_t>({1, 3}, {2});
  EXPECT_NEAR(nn::cross_entropy(logits, labels).item(), std::log(4), 1e-6);
  EXPECT_NEAR(nn::mse_loss(logits, logits + 2).item(), 4, 1e-6);
}

}  // namespace
}  // namespace weft
