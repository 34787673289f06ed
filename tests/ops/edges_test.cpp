// Every kind of op on what is easily forgotten: no elements, no dimensions, sizes of 0 and 1 with odd strides, whole
// numbers at the ends of their range.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "tensor/view.h"
#include "tests/expect_error.h"
#include "weft.h"

namespace weft {
namespace {

using Doubles = std::vector<double>;
using Longs = std::vector<int64_t>;

struct NamedOp {
  const char* name;
  std::function<Tensor(const Tensor&)> f;
};

std::vector<NamedOp> shape_keeping() {
  return {{"neg", neg},
          {"abs", abs},
          {"square", square},
          {"exp", exp},
          {"log", [](const Tensor& x) { return log(x * x + 1); }},
          {"sqrt", [](const Tensor& x) { return sqrt(x * x + 1); }},
          {"rsqrt", [](const Tensor& x) { return rsqrt(x * x + 1); }},
          {"sin", sin},
          {"cos", cos},
          {"erf", erf},
          {"sigmoid", sigmoid},
          {"tanh", tanh},
          {"relu", relu},
          {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.1); }},
          {"gelu", gelu},
          {"gelu_tanh", gelu_tanh},
          {"silu", silu},
          {"softplus", softplus},
          {"clamp", [](const Tensor& x) { return clamp(x, -0.5, 0.5); }},
          {"pow", [](const Tensor& x) { return pow(x, 2.0); }},
          {"add", [](const Tensor& x) { return x + x; }},
          {"sub", [](const Tensor& x) { return 1 - x; }},
          {"mul", [](const Tensor& x) { return x * x; }},
          {"div", [](const Tensor& x) { return x / (x * x + 1); }},
          {"maximum", [](const Tensor& x) { return maximum(x, x * 0.5); }},
          {"where", [](const Tensor& x) { return where(gt(x, 0), x, x * 2); }},
          {"masked_fill", [](const Tensor& x) { return masked_fill(x, gt(x, 0), 3); }},
          {"dropout", [](const Tensor& x) { return dropout(x, 0.5, true); }},
          {"sum", [](const Tensor& x) { return x * sum(x); }},
          {"clone", [](const Tensor& x) { return x.clone(); }},
          {"contiguous", [](const Tensor& x) { return x.contiguous() * 1; }},
          {"to", [](const Tensor& x) { return x.to(f64).to(f32); }}};
}

TEST(Edges, NoElementsAndNoDimensions) {
  for (const auto& [name, f] : shape_keeping())
    for (const Shape& sizes : {Shape{}, Shape{0}, Shape{1}, Shape{0, 3}, Shape{2, 0, 3}, Shape{1, 1}}) {
      SCOPED_TRACE(fmt::format("{} {}", name, str(sizes)));
      Tensor x = full(sizes, 0.25);
      x.requires_grad_();
      const Tensor y = f(x);
      EXPECT_EQ(y.sizes(), sizes);
      sum(y).backward();
      ASSERT_TRUE(x.grad().defined());
      EXPECT_EQ(x.grad().sizes(), sizes);
    }
}

/// x with the strides of its dimensions of size 1 made absurd, which changes nothing.
Tensor odd(const Tensor& x) {
  Shape strides = x.strides();
  for (int64_t d = 0; d < x.dim(); ++d)
    if (x.sizes()[d] == 1) strides[d] = d % 2 ? 0 : 977;
  return raw::view(x, x.sizes(), strides, x.offset());
}

TEST(Edges, StridesOfSizeOneDoNotMatter) {
  std::vector<NamedOp> ops = shape_keeping();
  ops.push_back({"softmax", [](const Tensor& x) { return softmax(x, -1); }});
  ops.push_back({"log_softmax", [](const Tensor& x) { return log_softmax(x, 1); }});
  ops.push_back({"cumsum", [](const Tensor& x) { return cumsum(x, 2); }});
  ops.push_back({"max", [](const Tensor& x) { return max(x, {3}); }});
  ops.push_back({"var", [](const Tensor& x) { return var(x, {2, 3}, {.correction = 0}); }});
  ops.push_back({"flatten", [](const Tensor& x) { return x.flatten(1); }});
  ops.push_back({"permute", [](const Tensor& x) { return x.permute({0, 2, 3, 1}).flatten(1) * 1; }});
  ops.push_back({"topk", [](const Tensor& x) { return topk(x, 1).values; }});
  ops.push_back({"gather", [](const Tensor& x) { return gather(x, 2, zeros(x.sizes(), i64)); }});
  ops.push_back({"index_select", [](const Tensor& x) { return index_select(x, 3, from<int64_t>({0, 0}, {2})); }});
  ops.push_back({"cat", [](const Tensor& x) { return cat({x, x}, 1); }});
  ops.push_back({"stack", [](const Tensor& x) { return stack({x, x}, 1); }});
  ops.push_back({"pad", [](const Tensor& x) { return pad(x, {{1, 1}, {0, 2}}); }});
  ops.push_back({"linear", [](const Tensor& x) { return linear(x, full({3, x.size(-1)}, 0.5), ones({3})); }});
  ops.push_back({"matmul", [](const Tensor& x) { return matmul(x, x.t()); }});
  ops.push_back({"conv2d", [](const Tensor& x) {
                   return conv2d(x, full({2, x.size(1), 1, 1}, 0.5), ones({2}), {.padding = 1});
                 }});
  ops.push_back({"conv2d 3x3", [](const Tensor& x) {
                   return conv2d(x, full({2, x.size(1), 3, 3}, 0.5), ones({2}), {.padding = 1});
                 }});
  ops.push_back({"max_pool2d", [](const Tensor& x) { return max_pool2d(x, {.kernel = 1}); }});
  ops.push_back({"avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, {.kernel = {1, 2}, .padding = {0, 1}}); }});
  ops.push_back({"global_avg_pool", global_avg_pool});
  ops.push_back({"batch_norm", [](const Tensor& x) {
                   const int64_t c = x.size(1);
                   return batch_norm(x, ones({c}), zeros({c}), zeros({c}), ones({c}), {.training = false});
                 }});
  ops.push_back({"layer_norm", [](const Tensor& x) { return layer_norm(x, ones({x.size(-1)}), zeros({x.size(-1)})); }});
  ops.push_back({"group_norm", [](const Tensor& x) { return group_norm(x, 1, {}, {}); }});
  ops.push_back({"cross_entropy", [](const Tensor& x) {
                   return cross_entropy(x, zeros({x.size(0), x.size(2), x.size(3)}, i64));
                 }});
  ops.push_back({"mse_loss", [](const Tensor& x) { return mse_loss(x, zeros(x.sizes())); }});
  for (const auto& [name, f] : ops)
    for (const Shape& sizes : {Shape{1, 3, 4, 5}, Shape{2, 1, 4, 5}, Shape{2, 3, 1, 5}, Shape{2, 3, 4, 1},
                               Shape{1, 1, 4, 1}, Shape{1, 1, 1, 1}, Shape{1, 16, 1, 16}}) {
      SCOPED_TRACE(fmt::format("{} {}", name, str(sizes)));
      manual_seed(3);
      const Tensor plain = randn(sizes);
      Tensor a = raw::clone(plain), b = odd(raw::clone(plain));
      a.requires_grad_();
      b.requires_grad_();
      manual_seed(4);
      const Tensor ya = f(a);
      manual_seed(4);
      const Tensor yb = f(b);
      EXPECT_EQ(ya.sizes(), yb.sizes());
      const Doubles wanted = ya.to_vector<double>(), got = yb.to_vector<double>();
      for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-5);
      sum(square(ya)).backward();
      sum(square(yb)).backward();
      const Doubles da = a.grad().to_vector<double>(), db = b.grad().to_vector<double>();
      for (size_t i = 0; i < da.size(); ++i) EXPECT_NEAR(db[i], da[i], 1e-5 * std::max(1.0, std::fabs(da[i])));
    }
}

TEST(Edges, MatrixProductsWithSizesOfZero) {
  Tensor a = ones({2, 3, 0}), b = ones({2, 0, 4});
  a.requires_grad_();
  b.requires_grad_();
  const Tensor y = matmul(a, b);
  EXPECT_EQ(y.to_vector<double>(), Doubles(24, 0.0));
  sum(y).backward();
  EXPECT_EQ(a.grad().sizes(), (Shape{2, 3, 0}));
  EXPECT_EQ(b.grad().sizes(), (Shape{2, 0, 4}));
  EXPECT_EQ(matmul(ones({3, 0}), ones({5, 0, 4})).sizes(), (Shape{5, 3, 4}));
  EXPECT_EQ(matmul(ones({0, 3, 2}), ones({2, 4})).sizes(), (Shape{0, 3, 4}));
}

TEST(Edges, LinearWithSizesOfZero) {
  for (const auto& [rows, in, out] : std::vector<std::array<int64_t, 3>>{{0, 3, 4}, {2, 0, 4}, {2, 3, 0}, {0, 0, 0}}) {
    SCOPED_TRACE(fmt::format("{} {} {}", rows, in, out));
    Tensor x = ones({rows, in}), weight = ones({out, in}), bias = full({out}, 2);
    for (Tensor* t : {&x, &weight, &bias}) t->requires_grad_();
    const Tensor y = linear(x, weight, bias, Activation::relu);
    EXPECT_EQ(y.sizes(), (Shape{rows, out}));
    sum(y).backward();
    EXPECT_EQ(x.grad().to_vector<double>(), Doubles(static_cast<size_t>(rows * in), static_cast<double>(out)));
    EXPECT_EQ(weight.grad().to_vector<double>(), Doubles(static_cast<size_t>(out * in), static_cast<double>(rows)));
    EXPECT_EQ(bias.grad().to_vector<double>(), Doubles(static_cast<size_t>(out), static_cast<double>(rows)));
  }
}

TEST(Edges, ConvolutionsWithoutChannelsAreRefused) {
  EXPECT_ERROR(conv2d(ones({1, 2, 4, 4}), ones({0, 2, 3, 3})), "[conv2d]");
  EXPECT_ERROR(conv2d(ones({1, 0, 4, 4}), ones({2, 0, 3, 3})), "[conv2d]");
  EXPECT_ERROR(conv2d(ones({1, 2, 4, 4}, i64), ones({2, 2, 3, 3}, i64)), "[conv2d] wants a floating dtype, got i64");
  EXPECT_ERROR(conv2d(ones({1, 2, 4, 4}), ones({2, 2, 0, 3})), "[conv2d]");
  Tensor none = ones({0, 2, 4, 4}), weight = ones({3, 2, 3, 3});
  none.requires_grad_();
  weight.requires_grad_();
  const Tensor y = conv2d(none, weight);
  EXPECT_EQ(y.sizes(), (Shape{0, 3, 2, 2}));
  sum(y).backward();
  EXPECT_EQ(weight.grad().to_vector<double>(), Doubles(54, 0.0));
}

TEST(Edges, PoolingAndNormsOfAnEmptyBatch) {
  Tensor x = ones({0, 4, 4, 4});
  x.requires_grad_();
  const Tensor y = max_pool2d(x) + avg_pool2d(x);
  EXPECT_EQ(y.sizes(), (Shape{0, 4, 2, 2}));
  const Tensor z = layer_norm(group_norm(y, 2, ones({4}), zeros({4})), ones({2}), zeros({2}));
  (sum(softmax(z)) + sum(global_max_pool(z))).backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(embedding(ones({3, 2}), zeros({0}, i64)).sizes(), (Shape{0, 2}));
  EXPECT_EQ(cross_entropy(ones({0, 3}), zeros({0}, i64)).item(), 0);
}

TEST(Edges, WholeNumbersAtTheEndsOfTheirRange) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  constexpr int32_t least32 = std::numeric_limits<int32_t>::min();
  // They wrap, as two's complement does; the machine's own division would trap.
  EXPECT_EQ(div(from<int64_t>({least, 7, -7}, {3}), from<int64_t>({-1, -1, 2}, {3})).to_vector<int64_t>(),
            (Longs{least, -7, -3}));
  EXPECT_EQ(div(from<int32_t>({least32}, {1}), from<int32_t>({-1}, {1})).to_vector<int32_t>()[0], least32);
  EXPECT_EQ(add(from<int64_t>({most}, {1}), from<int64_t>({1}, {1})).to_vector<int64_t>()[0], least);
  EXPECT_EQ(neg(from<int64_t>({least}, {1})).to_vector<int64_t>()[0], least);
  EXPECT_EQ(abs(from<int64_t>({least}, {1})).to_vector<int64_t>()[0], least);
  EXPECT_EQ(mul(from<int64_t>({most}, {1}), from<int64_t>({2}, {1})).to_vector<int64_t>()[0], -2);
  EXPECT_ERROR(div(from<int64_t>({1}, {1}), from<int64_t>({0}, {1})), "[div] an integer divisor is 0");
}

TEST(Edges, ANumberMustFitTheDtype) {
  const Tensor bytes = from<uint8_t>({0, 5, 255}, {3});
  EXPECT_EQ((bytes - 1).to_vector<int64_t>(), (Longs{255, 4, 254}));
  EXPECT_EQ((bytes + 1).to_vector<int64_t>(), (Longs{1, 6, 0}));
  EXPECT_ERROR(bytes + 300, "300 does not fit");
  EXPECT_ERROR(lt(bytes, -1), "-1 does not fit");
  EXPECT_ERROR(from<int64_t>({1}, {1}) * 1e30, "does not fit");
  EXPECT_ERROR(from<int64_t>({1}, {1}) + std::nan(""), "not a whole number");
}

TEST(Edges, MaskedFillOfATemporaryThatOverlapsItself) {
  Tensor repeated = full({1}, 5).expand({3});
  const Tensor y = masked_fill(std::move(repeated), from<bool>({true, false, false}, {3}), 1);
  EXPECT_EQ(y.to_vector<double>(), (Doubles{1, 5, 5}));
}

TEST(Edges, OneHotOfAnyDtype) {
  for (DType t : {f32, f64, bf16, f16, i32, i64, u8, boolean})
    EXPECT_EQ(one_hot(from<int64_t>({1, 0}, {2}), 2, t).to_vector<int64_t>(), (Longs{0, 1, 1, 0})) << name(t);
}

}  // namespace
}  // namespace weft
