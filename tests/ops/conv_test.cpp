// Convolutions: what the op cases do not ask.
#include "autograd/ops/conv.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "tensor/kernels.h"
#include "tensor/random.h"
#include "tensor/view.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

/// Root of the mean squared difference.
double rms(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

TEST(Conv, WinogradIsAsExactAsTheDirectSum) {
  manual_seed(3);
  const int64_t channels = 32, size = 14, out = size - 2;
  const Tensor x = randn({2, channels, size, size}), w = randn({channels, channels, 3, 3});
  const std::vector<double> exact = conv2d(x.to(f64), w.to(f64)).to_vector<double>();
  const auto xs = x.to_vector<float>(), ws = w.to_vector<float>();
  std::vector<double> direct;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t o = 0; o < channels; ++o)
      for (int64_t h = 0; h < out; ++h)
        for (int64_t v = 0; v < out; ++v) {
          float sum = 0;
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t a = 0; a < 3; ++a)
              for (int64_t b = 0; b < 3; ++b)
                sum += xs[static_cast<size_t>(((n * channels + c) * size + h + a) * size + v + b)] *
                       ws[static_cast<size_t>(((o * channels + c) * 3 + a) * 3 + b)];
          direct.push_back(static_cast<double>(sum));
        }
  EXPECT_LE(rms(conv2d(x, w).to_vector<double>(), exact), 1.1 * rms(direct, exact));
}

TEST(Conv, GradientHasTheInputsShapeAndIsZeroWhereNothingWasRead) {
  for (const DType dtype : {f32, f64}) {
    Tensor x = ones({1, 2, 6, 6}, dtype);
    x.requires_grad_();
    sum(conv2d(x, ones({2, 2, 3, 3}, dtype), {}, {.stride = 2})).backward();
    EXPECT_EQ(x.grad().sizes(), x.sizes());
    EXPECT_EQ(sum(x.grad().narrow(2, 5, 1)).item(), 0);  // the last row and column lie past the last window
    EXPECT_EQ(sum(x.grad().narrow(3, 5, 1)).item(), 0);
    EXPECT_EQ(sum(x.grad()).item(), 2 * 2 * 4 * 9);
  }
}

TEST(Conv, GradientsThatNobodyWantsAreNotThere) {
  const Tensor x = ones({1, 16, 8, 8});
  Tensor weight = ones({16, 16, 3, 3});
  weight.requires_grad_();
  sum(conv2d(x, weight, ones({16}))).backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}

/// Every element within `allowed` of the other's, relative to max(1, |b|).
void expect_near(const Tensor& a, const Tensor& b, double allowed, const std::string& what) {
  ASSERT_EQ(a.sizes(), b.sizes()) << what;
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::fabs(x[i] - y[i]), allowed * std::max(1.0, std::fabs(y[i]))) << what << ", element " << i;
}

TEST(Conv, DeviceGradientsOf16BitsAreSummedInF32) {
  const Device device = testing::test_device();
  struct Window {
    Shape x, w;
    Conv2dOptions options;
  };
  const Window windows[] = {{{3, 16, 6, 7}, {16, 8, 3, 3}, {.stride = {1, 2}, .padding = 1, .groups = 2}},
                            {{1, 3, 9, 8}, {4, 3, 3, 3}, {.padding = {0, 2}, .dilation = 2}},
                            {{2, 4, 5, 5}, {4, 1, 2, 2}, {.stride = 3, .groups = 4}},
                            {{2, 8, 5, 5}, {6, 8, 1, 1}, {}}};
  for (const DType dtype : {bf16, f16})
    for (const Window& v : windows) {
      manual_seed(7);
      std::vector<Tensor> exact{randn(v.x, f32).to(dtype).to(f64), randn(v.w, f32).to(dtype).to(f64),
                                randn({v.w[0]}, f32).to(dtype).to(f64)};
      std::vector<Tensor> rounded;
      for (Tensor& t : exact) rounded.push_back(t.to(dtype).to(device));
      for (auto* list : {&exact, &rounded})
        for (Tensor& t : *list) t.requires_grad_();
      const Tensor wanted = conv2d(exact[0], exact[1], exact[2], v.options);
      const Tensor got = conv2d(rounded[0], rounded[1], rounded[2], v.options);
      expect_near(got, wanted, 0x1p-7, "value");
      const Tensor dy = randn(wanted.sizes(), f32).to(dtype);
      wanted.backward({.gradient = dy.to(f64)});
      got.backward({.gradient = dy.to(device)});
      const double unit = dtype == bf16 ? 0x1p-8 : 0x1p-11;
      for (size_t i = 0; i < 3; ++i)
        expect_near(rounded[i].grad(), exact[i].grad(), 1.01 * unit,
                    fmt::format("{} gradient {} of {}", name(dtype), i, str(v.w)));
    }
}

TEST(Conv, EmptyBatch) {
  Tensor weight = ones({16, 16, 3, 3});
  weight.requires_grad_();
  const Tensor y = conv2d(zeros({0, 16, 8, 8}), weight);
  EXPECT_EQ(y.sizes(), (Shape{0, 16, 6, 6}));
  sum(y).backward();
  EXPECT_EQ(sum(weight.grad()).item(), 0);
}

TEST(Conv, WrongArgumentsAreNamed) {
  const Tensor x = zeros({64, 1, 28, 28});
  EXPECT_ERROR(conv2d(x, zeros({64, 32, 3, 3})),
               "[conv2d] weight wants 32 input channels, input has 1 (input [64, 1, 28, 28], weight [64, 32, 3, 3])");
  EXPECT_ERROR(conv2d(x, zeros({8, 1, 30, 3})), "the kernel spans 30, the padded input only 28");
  EXPECT_ERROR(conv2d(x, zeros({8, 1, 3, 3}), zeros({7})), "the bias wants f32 [8], got f32 [7]");
  EXPECT_ERROR(conv2d(x, zeros({8, 1, 3, 3}), {}, {.stride = 0}), "stride and dilation must be above 0");
  EXPECT_ERROR(conv2d(x, zeros({8, 1, 3, 3}), {}, {.groups = 3}), "8 output channels do not divide into 3 groups");
  EXPECT_ERROR(conv2d(x, zeros({8, 1, 3, 3}, f64)), "input and weight have dtypes f32 and f64");
  EXPECT_ERROR(conv2d(zeros({28, 28}), zeros({8, 1, 3, 3})), "wants input [N, C, H, W] and weight [out, in, kh, kw]");
  EXPECT_ERROR(conv1d(x, zeros({8, 1, 3})), "[conv1d] wants input [N, C, L]");
}

TEST(Linear, WrongArgumentsAreNamed) {
  EXPECT_ERROR(linear(zeros({5, 4}), zeros({3, 6})),
               "[linear] weight wants 6 input features, input has 4 (input [5, 4], weight [3, 6])");
  EXPECT_ERROR(linear(zeros({5, 6}), zeros({3, 6}), zeros({4})), "the bias wants shape [3], got [4]");
  EXPECT_ERROR(matmul(zeros({2, 3}), zeros({4, 5})), "[matmul] the inner sizes of [2, 3] and [4, 5] differ: 3 and 4");
  EXPECT_ERROR(matmul(zeros({2, 2, 3}), zeros({3, 3, 5})), "shapes [2] and [3] do not broadcast");
  EXPECT_ERROR(matmul(arange(3), arange(3)), "wants a floating dtype, got i64");
}

TEST(Matmul, DeviceEmptySizes) {
  const Device d = testing::test_device();
  EXPECT_EQ(sum(matmul(zeros({2, 0}, d), zeros({0, 3}, d))).item(), 0);
  EXPECT_EQ(matmul(zeros({0, 4}, d), zeros({4, 3}, d)).sizes(), (Shape{0, 3}));
  EXPECT_EQ(linear(zeros({2, 0}, d), zeros({3, 0}, d), ones({3}, d)).to_vector<float>(), std::vector<float>(6, 1.0f));
  const Tensor cut = linear(zeros({2, 0}, d), zeros({2, 0}, d), from<float>({1, -1}, {2}, d), Activation::relu);
  EXPECT_EQ(cut.to_vector<float>(), (std::vector<float>{1, 0, 1, 0}));
  EXPECT_EQ(linear(zeros({0, 4}, d), zeros({3, 4}, d)).sizes(), (Shape{0, 3}));
}

// Layouts that a BLAS reads as they are, reads transposed, joins into one product, or cannot read.
TEST(Matmul, DeviceReadsAnyStrides) {
  const Device device = testing::test_device();
  struct Layout {
    Shape strides;
    int64_t elements;
  };
  constexpr int64_t batch = 3, k = 5, n = 4;
  for (const DType dtype : {f32, f64, bf16})
    for (const int64_t m : {1, 2}) {
      const std::vector<Layout> lefts = {
          {{m * k, k, 1}, 60}, {{0, k, 1}, 60}, {{m * k + 3, k, 1}, 60}, {{m * k, 1, m}, 60},  {{40, 20, 2}, 200},
          {{0, 1, 3}, 60},     {{2, 1, 6}, 60}, {{0, 0, 1}, 60},         {{m * 8, 8, 1}, 100}, {{k, batch * k, 1}, 60}};
      const std::vector<Layout> rights = {{{k * n, n, 1}, 60}, {{0, n, 1}, 60},   {{0, 1, k}, 60},
                                          {{0, 7, 1}, 60},     {{20, 2, 8}, 120}, {{k * n, 1, k}, 60}};
      for (const Layout& left : lefts)
        for (const Layout& right : rights) {
          manual_seed(5);
          const Tensor a = raw::view(randn({left.elements}, dtype).to(device), {batch, m, k}, left.strides, 0);
          const Tensor b = raw::view(randn({right.elements}, dtype).to(device), {batch, k, n}, right.strides, 0);
          Tensor got = full({batch, m, n}, 77, {dtype, device}), wanted = full({batch, m, n}, 77, dtype);
          kernels::matmul(a, b, Tensor(), Activation::none, got);
          kernels::matmul(raw::contiguous(a.to(cpu)), raw::contiguous(b.to(cpu)), Tensor(), Activation::none, wanted);
          expect_near(got, wanted,
                      dtype == f64   ? 1e-14
                      : dtype == f32 ? 1e-6
                                     : 0x1p-7,
                      fmt::format("{} {} · {}", name(dtype), str(left.strides), str(right.strides)));
        }
    }
}

}  // namespace
}  // namespace weft
