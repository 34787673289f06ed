// Convolution and maximum over time: value and gradient.
#include "autograd/ops/conv_max.h"

#include <limits>

#include "autograd/autocast.h"
#include "autograd/record.h"
#include "autograd/work.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

constexpr const char* kOp = "conv1d_max";

void check_operands(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  WEFT_CHECK(x.dim() == 3 && weight.dim() == 3, kOp, "wants input [N, C, L] and weight [out, in, k], got {} and {}",
             str(x.sizes()), str(weight.sizes()));
  WEFT_CHECK(x.dtype() == weight.dtype(), kOp, "input and weight have dtypes {} and {}", name(x.dtype()),
             name(weight.dtype()));
  WEFT_CHECK(is_floating(x.dtype()), kOp, "wants a floating dtype, got {}", name(x.dtype()));
  WEFT_CHECK(x.device() == weight.device(), kOp, "input and weight are on {} and {}", name(x.device()),
             name(weight.device()));
  WEFT_CHECK(weight.numel() > 0, kOp, "a weight {} has no elements", str(weight.sizes()));
  WEFT_CHECK(x.size(1) == weight.size(1), kOp, "weight wants {} input channels, input has {} (input {}, weight {})",
             weight.size(1), x.size(1), str(x.sizes()), str(weight.sizes()));
  WEFT_CHECK(!bias.defined() || (bias.sizes() == Shape{weight.size(0)} && bias.dtype() == x.dtype()), kOp,
             "the bias wants {} [{}], got {} {}", name(x.dtype()), weight.size(0),
             bias.defined() ? name(bias.dtype()) : "", bias.defined() ? str(bias.sizes()) : "");
  WEFT_CHECK(!bias.defined() || bias.device() == x.device(), kOp, "input and bias are on {} and {}", name(x.device()),
             name(bias.device()));
}

}  // namespace

Tensor conv1d_max(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvMaxOptions& options) {
  if (autocast::narrows(x, weight, bias))
    return conv1d_max(autocast::narrowed(x), autocast::narrowed(weight), autocast::narrowed(bias), options);
  check_operands(x, weight, bias);
  const int64_t length = x.size(2), outputs = weight.size(0), kernel = weight.size(2);
  WEFT_CHECK(length >= kernel, kOp, "the kernel spans {}, the input only {} (input {})", kernel, length,
             str(x.sizes()));
  WEFT_CHECK(options.pool >= 1 && options.pool <= length - kernel + 1, kOp,
             "a pooling window of {} does not fit into {} places (input {}, kernel {})", options.pool,
             length - kernel + 1, str(x.sizes()), kernel);
  WEFT_CHECK(length <= std::numeric_limits<int32_t>::max(), kOp,
             "sequences of more than 2^31 - 1 places are not supported (input {})", str(x.sizes()));
  const int64_t places = (length - kernel + 1) / options.pool * options.pool;
  const Tensor by_place = raw::contiguous(raw::transpose(x, 1, 2));
  const TensorOptions made(x.dtype(), x.device());
  Tensor y = empty({x.size(0), outputs}, made), index = empty(y.sizes(), {DType::i32, x.device()});
  kernels::conv_max(by_place, weight, bias.defined() ? raw::contiguous(bias) : bias, places, y, index);
  count_multiply_adds(x.size(0) * places * weight.numel());
  return record(kOp, {x, weight, bias}, y,
                [x = needs_grad(weight) ? SavedTensor(by_place) : SavedTensor(),
                 weight = needs_grad(x) ? SavedTensor(weight) : SavedTensor(), index = SavedTensor(index),
                 has_bias = needs_grad(bias), x_sizes = by_place.sizes(), w_sizes = weight.sizes(),
                 made](const Tensor& dy) -> Grads {
                  Tensor dx = weight.defined() ? empty(x_sizes, made) : Tensor(),
                         dweight = x.defined() ? empty(w_sizes, made) : Tensor();
                  Tensor dbias = has_bias ? empty({w_sizes[0]}, made) : Tensor();
                  kernels::conv_max_grad(dy, x.defined() ? x() : Tensor(), weight.defined() ? weight() : Tensor(),
                                         index(), dx, dweight, dbias);
                  return {dx.defined() ? raw::transpose(dx, 1, 2) : dx, dweight, dbias};
                });
}

}  // namespace weft
