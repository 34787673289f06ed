// Convolutions: value and gradient.
#include "autograd/ops/conv.h"

#include "autograd/autocast.h"
#include "autograd/ops/activation.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "autograd/work.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

void check_arguments(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const ConvParameters& c) {
  WEFT_CHECK(x.dtype() == weight.dtype(), op, "input and weight have dtypes {} and {}", name(x.dtype()),
             name(weight.dtype()));
  WEFT_CHECK(is_floating(x.dtype()), op, "wants a floating dtype, got {}", name(x.dtype()));
  WEFT_CHECK(weight.numel() > 0, op, "a weight {} has no elements", str(weight.sizes()));
  WEFT_CHECK(x.device() == weight.device(), op, "input and weight are on {} and {}", name(x.device()),
             name(weight.device()));
  WEFT_CHECK(
      c.stride.h > 0 && c.stride.w > 0 && c.dilation.h > 0 && c.dilation.w > 0 && c.padding.h >= 0 && c.padding.w >= 0,
      op, "stride and dilation must be above 0 and padding not negative: stride {}x{}, dilation {}x{}, padding {}x{}",
      c.stride.h, c.stride.w, c.dilation.h, c.dilation.w, c.padding.h, c.padding.w);
  WEFT_CHECK(c.groups > 0 && weight.size(0) % c.groups == 0, op, "{} output channels do not divide into {} groups",
             weight.size(0), c.groups);
  WEFT_CHECK(x.size(1) == weight.size(1) * c.groups, op,
             "weight wants {} input channels, input has {} (input {}, weight {})", weight.size(1) * c.groups, x.size(1),
             str(x.sizes()), str(weight.sizes()));
  WEFT_CHECK(!bias.defined() || (bias.sizes() == Shape{weight.size(0)} && bias.dtype() == x.dtype()), op,
             "the bias wants {} [{}], got {} {}", name(x.dtype()), weight.size(0),
             bias.defined() ? name(bias.dtype()) : "", bias.defined() ? str(bias.sizes()) : "");
}

int64_t output_size(const char* op, int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  const int64_t span = dilation * (kernel - 1) + 1;
  WEFT_CHECK(in + 2 * padding >= span && kernel > 0, op, "the kernel spans {}, the padded input only {}", span,
             in + 2 * padding);
  return (in + 2 * padding - span) / stride + 1;
}

/// The convolution of images, recorded under `op`'s name.
Tensor conv_images(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvParameters& c,
                   Activation activation) {
  check_arguments(op, x, weight, bias, c);
  if (wants_input(activation) && (needs_grad(x) || needs_grad(weight) || needs_grad(bias)))
    return activate(conv_images(op, x, weight, bias, c, Activation::none), activation);
  const Shape sizes{x.size(0), weight.size(0),
                    output_size(op, x.size(2), weight.size(2), c.stride.h, c.padding.h, c.dilation.h),
                    output_size(op, x.size(3), weight.size(3), c.stride.w, c.padding.w, c.dilation.w)};
  Tensor y = empty_channels_last(sizes, {x.dtype(), x.device()});
  kernels::conv(x, weight, bias.defined() ? raw::contiguous(bias) : bias, c, activation, y);
  count_multiply_adds(sizes.numel() * weight.numel() / weight.size(0));
  return record(op, {x, weight, bias}, y,
                [x = needs_grad(weight) || needs_grad(bias) ? SavedTensor(x) : SavedTensor(),
                 weight = needs_grad(x) ? SavedTensor(weight) : SavedTensor(),
                 y = activation == Activation::none ? SavedTensor() : SavedTensor(y), x_sizes = x.sizes(),
                 w_sizes = weight.sizes(), c, wants_bias = needs_grad(bias)](const Tensor& dy_any) -> Grads {
                  const Tensor dy = y.defined() ? relu_gradient(dy_any, y()) : dy_any;
                  const TensorOptions options(dy.dtype(), dy.device());
                  Grads grads{Tensor(), Tensor(), Tensor()};
                  if (weight.defined()) {
                    grads[0] = empty_channels_last(x_sizes, options);
                    kernels::conv_backward_data(dy, weight(), c, grads[0]);
                  }
                  if (x.defined()) {
                    grads[1] = empty(w_sizes, options);
                    if (wants_bias) grads[2] = empty({w_sizes[0]}, options);
                    kernels::conv_backward_weight(x(), dy, c, grads[1], grads[2]);
                  }
                  return grads;
                });
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& o) {
  if (autocast::narrows(x, weight, bias))
    return conv2d(autocast::narrowed(x), autocast::narrowed(weight), autocast::narrowed(bias), o);
  WEFT_CHECK(x.dim() == 4 && weight.dim() == 4, "conv2d",
             "wants input [N, C, H, W] and weight [out, in, kh, kw], got {} and {}", str(x.sizes()),
             str(weight.sizes()));
  return conv_images("conv2d", x, weight, bias, {o.stride, o.padding, o.dilation, o.groups}, o.activation);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& o) {
  if (autocast::narrows(x, weight, bias))
    return conv1d(autocast::narrowed(x), autocast::narrowed(weight), autocast::narrowed(bias), o);
  WEFT_CHECK(x.dim() == 3 && weight.dim() == 3, "conv1d",
             "wants input [N, C, L] and weight [out, in, k], got {} and {}", str(x.sizes()), str(weight.sizes()));
  return conv_images("conv1d", x.unsqueeze(2), weight.unsqueeze(2), bias,
                     {{1, o.stride}, {0, o.padding}, {1, o.dilation}, o.groups}, o.activation)
      .squeeze(2);
}

}  // namespace weft
