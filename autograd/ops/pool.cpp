// Pooling: value and gradient. Sequences are images of height 1.
#include "autograd/ops/pool.h"

#include <limits>

#include "autograd/autocast.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

int64_t output_size(const char* op, const Tensor& x, int64_t size, int64_t kernel, int64_t stride, int64_t padding,
                    bool ceil_mode) {
  WEFT_CHECK(kernel >= 1 && stride >= 1, op, "kernel {} and stride {} must be at least 1", kernel, stride);
  WEFT_CHECK(0 <= padding && padding < kernel, op, "padding {} must be at least 0 and below the kernel, {}", padding,
             kernel);
  const int64_t room = size + 2 * padding - kernel + (ceil_mode ? stride - 1 : 0);
  WEFT_CHECK(size > 0 && room >= 0, op, "a window of {} does not fit into {} with padding {} (input {})", kernel, size,
             padding, str(x.sizes()));
  const int64_t outputs = room / stride + 1;
  return (outputs - 1) * stride >= size + padding ? outputs - 1 : outputs;
}

/// One pooling: x seen as `image` [N, C, H, W], and the sizes of the result before and after that detour.
struct Plan {
  const char* op;
  Tensor image;
  PoolWindow window;
  Shape out;  // [N, C, OH, OW]
  Shape result;
};

Plan plan_2d(const char* op, const Tensor& x, const Pool2dOptions& o) {
  WEFT_CHECK(x.dim() == 4, op, "wants an input [N, C, H, W], got {}", str(x.sizes()));
  PoolWindow window{o.kernel, o.stride, o.padding, o.count_padding};
  if (window.stride.h == 0) window.stride.h = o.kernel.h;
  if (window.stride.w == 0) window.stride.w = o.kernel.w;
  const Shape out{x.sizes()[0], x.sizes()[1],
                  output_size(op, x, x.sizes()[2], window.kernel.h, window.stride.h, window.padding.h, o.ceil_mode),
                  output_size(op, x, x.sizes()[3], window.kernel.w, window.stride.w, window.padding.w, o.ceil_mode)};
  return {op, x, window, out, out};
}

Plan plan_1d(const char* op, const Tensor& x, const Pool1dOptions& o) {
  WEFT_CHECK(x.dim() == 3, op, "wants an input [N, C, L], got {}", str(x.sizes()));
  const PoolWindow window{{1, o.kernel}, {1, o.stride == 0 ? o.kernel : o.stride}, {0, o.padding}, o.count_padding};
  const int64_t length = output_size(op, x, x.sizes()[2], o.kernel, window.stride.w, o.padding, o.ceil_mode);
  const int64_t n = x.sizes()[0], c = x.sizes()[1];
  return {op, raw::unsqueeze(x, 2), window, {n, c, 1, length}, {n, c, length}};
}

Plan plan_global(const char* op, const Tensor& x) {
  WEFT_CHECK(x.dim() >= 3, op, "wants an input [N, C, …] with places to pool over, got {}", str(x.sizes()));
  const int64_t n = x.sizes()[0], c = x.sizes()[1];
  int64_t places = 1;
  for (int64_t i = 2; i < x.dim(); ++i) places *= x.sizes()[i];
  WEFT_CHECK(places > 0, op, "there is nothing to pool over in {}", str(x.sizes()));
  return {op, raw::reshape(x, {n, c, 1, places}), {{1, places}, {1, places}, 0, true}, {n, c, 1, 1}, {n, c}};
}

Tensor max_pool(const Tensor& x, const Plan& plan) {
  WEFT_CHECK(plan.image.sizes()[2] * plan.image.sizes()[3] <= std::numeric_limits<int32_t>::max(), plan.op,
             "planes of more than 2^31 - 1 places are not supported (input {})", str(x.sizes()));
  Tensor y = empty_channels_last(plan.out, {x.dtype(), x.device()}), index;
  if (needs_grad(x)) index = empty_channels_last(plan.out, {DType::i32, x.device()});
  kernels::max_pool(plan.image, plan.window, y, index);
  return record(plan.op, {x}, raw::reshape(y, plan.result),
                [index = index.defined() ? SavedTensor(index) : SavedTensor(), window = plan.window, out = plan.out,
                 image = plan.image.sizes(), sizes = x.sizes()](const Tensor& dy) -> Grads {
                  Tensor dx = empty_channels_last(image, {dy.dtype(), dy.device()});
                  kernels::max_pool_grad(raw::reshape(dy, out), index(), window, dx);
                  return {raw::reshape(dx, sizes)};
                });
}

Tensor avg_pool(const Tensor& x, const Plan& plan) {
  Tensor y = empty_channels_last(plan.out, {x.dtype(), x.device()});
  kernels::avg_pool(plan.image, plan.window, y);
  return record(
      plan.op, {x}, raw::reshape(y, plan.result),
      [window = plan.window, out = plan.out, image = plan.image.sizes(), sizes = x.sizes()](const Tensor& dy) -> Grads {
        Tensor dx = empty_channels_last(image, {dy.dtype(), dy.device()});
        kernels::avg_pool_grad(raw::reshape(dy, out), window, dx);
        return {raw::reshape(dx, sizes)};
      });
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return max_pool(x, plan_2d("max_pool2d", x, options));
}
Tensor max_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return max_pool(x, plan_1d("max_pool1d", x, options));
}
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  return avg_pool(x, plan_2d("avg_pool2d", x, options));
}
Tensor avg_pool1d(const Tensor& x, const Pool1dOptions& options) {
  return avg_pool(x, plan_1d("avg_pool1d", x, options));
}

// Row-major planes are rows to a reduction, which needs no other layout.
Tensor global_avg_pool(const Tensor& x) {
  const Autocast no_autocast;  // keeps x's dtype in either layout, as other pooling does
  const Plan plan = plan_global("global_avg_pool", x);
  return x.is_contiguous() ? mean(x.reshape({x.sizes()[0], x.sizes()[1], plan.image.sizes()[3]}), {2})
                           : avg_pool(x, plan);
}
Tensor global_max_pool(const Tensor& x) {
  const Plan plan = plan_global("global_max_pool", x);
  return x.is_contiguous() ? max(x.reshape({x.sizes()[0], x.sizes()[1], plan.image.sizes()[3]}), {2})
                           : max_pool(x, plan);
}

}  // namespace weft
