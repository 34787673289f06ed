// Attention layers and layers of Transformers: shapes, defaults, masks, dropout, mixed precision, errors. Their values
// are compared with PyTorch's in tests/golden.
#include "nn/attention.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/index.h"
#include "autograd/ops/reduce.h"
#include "nn/transformer.h"
#include "tensor/random.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

double largest(const Tensor& x) { return max(abs(x.detach())).item(); }

TEST(MultiHeadAttention, ShapesAndDefaults) {
  nn::MultiHeadAttention layer({.width = 12, .heads = 3});
  std::vector<std::string> names;
  for (const Named& p : layer.parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}));
  EXPECT_EQ(layer.parameter_count(), 4 * 12 * 12 + 4 * 12);
  EXPECT_LE(largest(layer.in_proj_weight), std::sqrt(6.0 / 48));
  EXPECT_EQ(largest(layer.in_proj_bias), 0);
  EXPECT_EQ(largest(layer.out_proj.bias), 0);
  EXPECT_EQ(layer(randn({2, 5, 12})).sizes(), Shape({2, 5, 12}));
  EXPECT_EQ(layer.cross(randn({2, 5, 12}), randn({2, 7, 12})).sizes(), Shape({2, 5, 12}));
  EXPECT_EQ(nn::MultiHeadAttention({.width = 4, .heads = 1, .bias = false}).parameters().size(), 2u);
}

TEST(MultiHeadAttention, SelfIsCrossWithItself) {
  nn::MultiHeadAttention layer({.width = 8, .heads = 2});
  const Tensor x = randn({2, 5, 8}), mask = ne(randint(0, 3, {2, 5}), 0);
  EXPECT_LT(largest(layer.self(x, mask) - layer.cross(x, x, mask)), 1e-6);
}

TEST(MultiHeadAttention, CausalityHidesWhatComesLater) {
  nn::MultiHeadAttention layer({.width = 8, .heads = 2, .causal = true});
  const Tensor x = randn({1, 6, 8}), changed = x.clone();
  Tensor last = changed.select(1, 5);
  last.fill_(7);
  const Tensor difference = layer(x) - layer(changed);
  EXPECT_EQ(largest(difference.narrow(1, 0, 5)), 0);
  EXPECT_GT(largest(difference.select(1, 5)), 1e-3);
}

TEST(MultiHeadAttention, ErrorsNameTheLayer) {
  EXPECT_NE(error_of([] { nn::MultiHeadAttention({.width = 10, .heads = 3}); }).find(".width 10 and .heads 3"),
            std::string::npos);
  nn::TransformerEncoderLayer layer({.width = 8, .heads = 2});
  const std::string message = error_of([&] { layer(randn({2, 5, 6})); });
  EXPECT_NE(message.find("TransformerEncoderLayer.self_attn: wants x [B, T, 8], got [2, 5, 6]"), std::string::npos)
      << message;
}

TEST(TransformerLayer, DropoutActsWhileTraining) {
  nn::TransformerEncoderLayer layer({.width = 8, .heads = 2, .dropout = 0.5});
  const Tensor x = randn({2, 5, 8});
  EXPECT_GT(largest(layer(x) - layer(x)), 1e-3);
  layer.eval();
  EXPECT_EQ(largest(layer(x) - layer(x)), 0);
}

TEST(TransformerLayer, EveryParameterGetsAGradient) {
  nn::TransformerDecoderLayer layer({.width = 8, .heads = 2, .pre_norm = true});
  Tensor x = randn({2, 5, 8}), memory = randn({2, 3, 8});
  sum(square(layer(x, memory, {.memory = ne(randint(0, 2, {2, 3}), 0)}))).backward();
  for (const Named& p : layer.parameters()) {
    ASSERT_TRUE(p.value.grad().defined()) << p.name;
    EXPECT_TRUE(std::isfinite(largest(p.value.grad()))) << p.name;
  }
}

TEST(TransformerLayer, MixedPrecisionKeepsTheStreamInSinglePrecision) {
  for (const bool pre : {false, true}) {
    nn::TransformerEncoderLayer layer({.width = 16, .heads = 2, .dropout = 0.1, .pre_norm = pre});
    const Tensor x = randn({2, 5, 16});
    layer.eval();
    const Tensor wanted = layer(x);
    const Autocast guard(bf16);
    const Tensor y = layer(x);
    EXPECT_EQ(y.dtype(), f32);
    EXPECT_LT(largest(y - wanted), 0.1);
    layer.train();
    sum(square(layer(x))).backward();
    for (const Named& p : layer.parameters()) EXPECT_EQ(p.value.grad().dtype(), f32) << p.name;
  }
}

TEST(TransformerLayer, PaddingOnTheLeftChangesNothing) {
  nn::TransformerEncoderLayer layer({.width = 8, .heads = 2});
  layer.eval();
  const Tensor x = randn({1, 4, 8});
  const Tensor padded = cat({full({1, 3, 8}, 5), x}, 1);
  const Tensor mask = from<int64_t>({0, 0, 0, 1, 1, 1, 1}, {1, 7});
  EXPECT_LT(largest(layer(padded, ne(mask, 0)).narrow(1, 3, 4) - layer(x)), 1e-5);
}

TEST(LearnedPositions, AddsARowForEachPosition) {
  nn::LearnedPositions layer({.length = 6, .width = 3});
  Tensor x = zeros({2, 4, 3});
  const Tensor y = layer(x);
  EXPECT_EQ(y.detach().select(0, 1).to_vector<float>(), layer.weight.detach().narrow(0, 0, 4).to_vector<float>());
  sum(y).backward();
  EXPECT_EQ(layer.weight.grad().to_vector<double>(),
            (std::vector<double>{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0}));
  EXPECT_NE(error_of([&] { layer(zeros({1, 7, 3})); }).find("at most 6 positions"), std::string::npos);
}

}  // namespace
}  // namespace weft
