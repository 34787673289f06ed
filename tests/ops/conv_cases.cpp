// Cases of the convolutions.
#include "autograd/ops/conv.h"

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

Ref reference(const Refs& in, const Conv2dOptions& o) {
  const Ref &x = in[0], &w = in[1];
  auto out = [](int64_t n, int64_t k, int64_t s, int64_t p, int64_t d) {
    return (n + 2 * p - d * (k - 1) - 1) / s + 1;
  };
  Ref y({x.sizes[0], w.sizes[0], out(x.sizes[2], w.sizes[2], o.stride.h, o.padding.h, o.dilation.h),
         out(x.sizes[3], w.sizes[3], o.stride.w, o.padding.w, o.dilation.w)});
  const int64_t per_group = w.sizes[0] / o.groups;
  for (int64_t n = 0; n < y.sizes[0]; ++n)
    for (int64_t c = 0; c < y.sizes[1]; ++c)
      for (int64_t i = 0; i < y.sizes[2]; ++i)
        for (int64_t j = 0; j < y.sizes[3]; ++j) {
          double v = in.size() > 2 ? in[2][c] : 0;
          for (int64_t k = 0; k < w.sizes[1]; ++k)
            for (int64_t a = 0; a < w.sizes[2]; ++a)
              for (int64_t b = 0; b < w.sizes[3]; ++b) {
                const int64_t h = i * o.stride.h - o.padding.h + a * o.dilation.h,
                              l = j * o.stride.w - o.padding.w + b * o.dilation.w;
                if (h >= 0 && h < x.sizes[2] && l >= 0 && l < x.sizes[3])
                  v += w(c, k, a, b) * x(n, c / per_group * w.sizes[1] + k, h, l);
              }
          y(n, c, i, j) = activated(o.activation, v);
        }
  return y;
}

OpCase conv2d_case(const char* name, Shape x, Shape weight, Conv2dOptions options, bool bias = true) {
  OpCase c{.name = name,
           .inputs = {{x}, {weight}},
           .run = [options, bias](const Tensors& in) { return conv2d(in[0], in[1], bias ? in[2] : Tensor(), options); },
           .reference = [options](const Refs& in) { return reference(in, options); },
           .dtypes = {f32, f64, bf16, f16},
           .tolerance = 1e-5};
  if (bias) c.inputs.push_back({{weight[0]}});
  return c;
}

}  // namespace

OpCases conv_cases() {
  OpCase plain = conv2d_case("conv2d/plain", {2, 3, 6, 5}, {4, 3, 3, 3}, {});
  plain.bench = {{{64, 32, 26, 26}}, {{64, 32, 3, 3}}, {{64}}};
  plain.flops = 2.0 * 64 * 64 * 24 * 24 * 32 * 9;
  // Sizes that Winograd's algorithm takes: odd and even planes, each padding, channels of one and several vectors. The
  // inputs are kept small, and gradients of f64 (plain loops) and f32 are compared, so differences are left out.
  auto winograd = [](const char* name, Shape x, Shape weight, Conv2dOptions options, bool bias = true) {
    OpCase c = conv2d_case(name, x, weight, options, bias);
    c.differences = false;
    for (In& in : c.inputs) in.low = -0.5, in.high = 0.5;
    return c;
  };
  auto in_all_dtypes = [](OpCase c) {
    c.dtypes = {f32, f64, bf16, f16};
    return c;
  };
  return {
      plain,
      winograd("conv2d/winograd", {2, 16, 9, 10}, {32, 16, 3, 3}, {}),
      winograd("conv2d/winograd_wide", {1, 48, 12, 12}, {80, 48, 3, 3}, {.padding = 1}),
      winograd("conv2d/winograd_padded", {2, 16, 7, 8}, {16, 16, 3, 3}, {.padding = {2, 1}}),
      winograd("conv2d/winograd_relu", {3, 16, 6, 7}, {16, 16, 3, 3}, {.padding = 1, .activation = Activation::relu},
               false),
      winograd("conv2d/winograd_gelu", {2, 16, 6, 7}, {16, 16, 3, 3}, {.padding = 1, .activation = Activation::gelu}),
      conv2d_case("conv2d/no_bias", {2, 3, 6, 5}, {4, 3, 3, 2}, {}, false),
      conv2d_case("conv2d/one_channel", {2, 1, 7, 7}, {4, 1, 3, 3}, {}),
      conv2d_case("conv2d/relu", {2, 3, 6, 5}, {4, 3, 3, 3}, {.activation = Activation::relu}),
      conv2d_case("conv2d/gelu", {2, 3, 6, 5}, {4, 3, 3, 3}, {.activation = Activation::gelu}),
      conv2d_case("conv2d/gelu_tanh", {2, 3, 6, 5}, {4, 3, 3, 3}, {.activation = Activation::gelu_tanh}, false),
      conv2d_case("conv2d/stride_padding", {2, 2, 9, 8}, {3, 2, 3, 3}, {.stride = {2, 3}, .padding = {1, 2}}),
      conv2d_case("conv2d/stride_does_not_divide", {1, 2, 16, 16}, {2, 2, 7, 7}, {.stride = 3, .padding = 2}),
      conv2d_case("conv2d/last_row_never_read", {1, 2, 6, 6}, {2, 2, 3, 3}, {.stride = 2}),
      conv2d_case("conv2d/one_by_one_stride", {2, 3, 5, 5}, {4, 3, 1, 1}, {.stride = 2}),
      conv2d_case("conv2d/dilation", {1, 2, 9, 9}, {3, 2, 3, 3}, {.padding = 1, .dilation = {2, 3}}),
      conv2d_case("conv2d/groups", {2, 4, 6, 6}, {6, 2, 3, 3}, {.padding = 1, .groups = 2}),
      in_all_dtypes(
          conv2d_case("conv2d/groups_wide", {2, 16, 5, 5}, {24, 8, 3, 3}, {.stride = 2, .padding = 1, .groups = 2})),
      in_all_dtypes(conv2d_case("conv2d/one_by_one", {2, 8, 5, 5}, {6, 8, 1, 1}, {.activation = Activation::relu})),
      conv2d_case("conv2d/one_by_one_groups", {2, 8, 5, 5}, {6, 4, 1, 1}, {.groups = 2}),
      conv2d_case("conv2d/depthwise_dilated_stride", {2, 4, 9, 9}, {4, 1, 3, 3},
                  {.stride = 2, .padding = 1, .dilation = 2, .groups = 4}),
      {.name = "conv1d",
       .inputs = {{{2, 3, 11}}, {{4, 3, 3}}, {{4}}},
       .run = [](const Tensors& in) { return conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .dilation = 2}); },
       .reference =
           [](const Refs& in) {
             Refs wide = in;
             wide[0].sizes = {2, 3, 1, 11};
             wide[1].sizes = {4, 3, 1, 3};
             Ref y = reference(wide, {.stride = {1, 2}, .padding = {0, 1}, .dilation = {1, 2}});
             y.sizes = {y.sizes[0], y.sizes[1], y.sizes[3]};
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .tolerance = 1e-5},
  };
}

}  // namespace weft::testing
