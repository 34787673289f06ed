// Convolutions of images, channels-last from input to output: Winograd's for 3x3 in f32, else oneDNN for f32, and for
// bf16 where the CPU has it; 16-bit types go through f32 otherwise. Plain loops for f64.
#include "tensor/cpu/onednn.h"
#include "tensor/cpu/winograd.h"
#include "tensor/kernels.h"
#include "tensor/threads.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

using dnnl::memory;

/// oneDNN writes grouped weights with the group as a dimension of its own.
Tensor with_groups(const Tensor& weight, int64_t groups) {
  if (groups == 1) return weight;
  const Shape& s = weight.sizes();
  return raw::reshape(weight, {groups, s[0] / groups, s[1], s[2], s[3]});
}

struct Geometry {
  memory::dims stride, dilation, padding, padding_end;
};

/// oneDNN counts dilation from 0, and wants the padding at the far end that makes the sizes agree.
Geometry geometry(const ConvParameters& c, const Shape& x, const Shape& weight, const Shape& y) {
  auto far = [](int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t near) {
    return (out - 1) * stride + dilation * (kernel - 1) + 1 - in - near;
  };
  return {{c.stride.h, c.stride.w},
          {c.dilation.h - 1, c.dilation.w - 1},
          {c.padding.h, c.padding.w},
          {far(x[2], y[2], weight[2], c.stride.h, c.dilation.h, c.padding.h),
           far(x[3], y[3], weight[3], c.stride.w, c.dilation.w, c.padding.w)}};
}

/// The sizes and settings that all three directions share.
struct Problem {
  memory::desc x, weight, bias, y;
  Geometry g;
  onednn::Key key;

  Problem(char direction, const Shape& xs, const Shape& ws, const Shape& ys, bool has_bias, DType dtype,
          const ConvParameters& c, Activation activation)
      : x(onednn::describe(xs, channels_last_strides(xs), dtype)),
        weight(
            onednn::describe_any(c.groups == 1 ? ws : Shape{c.groups, ws[0] / c.groups, ws[1], ws[2], ws[3]}, dtype)),
        y(onednn::describe(ys, channels_last_strides(ys), dtype)),
        g(geometry(c, xs, ws, ys)) {
    if (has_bias) bias = onednn::describe({ws[0]}, {1}, dtype);
    key.add(direction).add(static_cast<int64_t>(dtype)).add(static_cast<int64_t>(activation)).add(has_bias);
    key.add(xs).add(ws).add(c.stride).add(c.padding).add(c.dilation).add(c.groups);
  }

  dnnl::convolution_forward::primitive_desc forward(const dnnl::primitive_attr& attr) const {
    const auto kind = dnnl::prop_kind::forward_training;
    const auto algorithm = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR < 3
    using Desc = dnnl::convolution_forward::desc;
    return {bias.get_size() > 0
                ? Desc(kind, algorithm, x, weight, bias, y, g.stride, g.dilation, g.padding, g.padding_end)
                : Desc(kind, algorithm, x, weight, y, g.stride, g.dilation, g.padding, g.padding_end),
            attr, onednn::engine()};
#else
    if (bias.get_size() > 0)
      return {onednn::engine(), kind,      algorithm,     x,   weight, bias, y, g.stride,
              g.dilation,       g.padding, g.padding_end, attr};
    return {onednn::engine(), kind, algorithm, x, weight, y, g.stride, g.dilation, g.padding, g.padding_end, attr};
#endif
  }
};

/// This and the two below: false, and nothing done, where oneDNN has only plain loops for a 16-bit convolution.
bool forward_onednn(const Tensor& x_any, const Tensor& weight_any, const Tensor& bias, const ConvParameters& c,
                    Activation activation, Tensor& out) {
  const Problem problem('f', x_any.sizes(), weight_any.sizes(), out.sizes(), bias.defined(), out.dtype(), c,
                        activation);
  const onednn::Prepared& p = onednn::prepared(problem.key, [&] {
    const auto pd = problem.forward(onednn::attributes(activation));
    return onednn::Prepared{
        dnnl::convolution_forward(pd), problem.x, pd.weights_desc(), problem.bias, problem.y, pd.scratchpad_desc(),
        onednn::is_plain_loops(pd)};
  });
  if (p.plain_loops && out.dtype() != DType::f32) return false;
  const Tensor x = raw::channels_last(x_any), weight = with_groups(raw::contiguous(weight_any), c.groups);
  onednn::run(p, {{DNNL_ARG_SRC, x.raw_data(), problem.x, &p.source},
                  {DNNL_ARG_WEIGHTS, weight.raw_data(), onednn::describe(weight), &p.weights},
                  {DNNL_ARG_BIAS, bias.defined() ? bias.raw_data() : nullptr, problem.bias, &p.bias},
                  {DNNL_ARG_DST, out.raw_data(), problem.y, &p.destination, true}});
  return true;
}

bool backward_data_onednn(const Tensor& dy_any, const Tensor& weight_any, const ConvParameters& c, Tensor& dx) {
  const Problem problem('d', dx.sizes(), weight_any.sizes(), dy_any.sizes(), false, dx.dtype(), c, Activation::none);
  const onednn::Prepared& p = onednn::prepared(problem.key, [&] {
    const dnnl::primitive_attr attr = onednn::attributes(Activation::none);
    const auto hint = problem.forward(attr);
#if DNNL_VERSION_MAJOR < 3
    const dnnl::convolution_backward_data::primitive_desc pd(
        dnnl::convolution_backward_data::desc(dnnl::algorithm::convolution_direct, problem.x, problem.weight, problem.y,
                                              problem.g.stride, problem.g.dilation, problem.g.padding,
                                              problem.g.padding_end),
        attr, onednn::engine(), hint);
#else
    const dnnl::convolution_backward_data::primitive_desc pd(
        onednn::engine(), dnnl::algorithm::convolution_direct, problem.x, problem.weight, problem.y, problem.g.stride,
        problem.g.dilation, problem.g.padding, problem.g.padding_end, hint, attr);
#endif
    return onednn::Prepared{
        dnnl::convolution_backward_data(pd), problem.x, pd.weights_desc(), {}, problem.y, pd.scratchpad_desc(),
        onednn::is_plain_loops(pd)};
  });
  if (p.plain_loops && dx.dtype() != DType::f32) return false;
  const Tensor dy = raw::channels_last(dy_any), weight = with_groups(raw::contiguous(weight_any), c.groups);
  onednn::run(p, {{DNNL_ARG_DIFF_DST, dy.raw_data(), problem.y, &p.destination},
                  {DNNL_ARG_WEIGHTS, weight.raw_data(), onednn::describe(weight), &p.weights},
                  {DNNL_ARG_DIFF_SRC, dx.raw_data(), problem.x, &p.source, true}});
  return true;
}

bool backward_weight_onednn(const Tensor& x_any, const Tensor& dy_any, const ConvParameters& c, Tensor& dweight,
                            Tensor& dbias) {
  const Problem problem('w', x_any.sizes(), dweight.sizes(), dy_any.sizes(), dbias.defined(), dweight.dtype(), c,
                        Activation::none);
  const onednn::Prepared& p = onednn::prepared(problem.key, [&] {
    const dnnl::primitive_attr attr = onednn::attributes(Activation::none);
    const auto hint = problem.forward(attr);
#if DNNL_VERSION_MAJOR < 3
    using Desc = dnnl::convolution_backward_weights::desc;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const Geometry& g = problem.g;
    const dnnl::convolution_backward_weights::primitive_desc pd(
        dbias.defined()
            ? Desc(algorithm, problem.x, problem.weight, problem.bias, problem.y, g.stride, g.dilation, g.padding,
                   g.padding_end)
            : Desc(algorithm, problem.x, problem.weight, problem.y, g.stride, g.dilation, g.padding, g.padding_end),
        attr, onednn::engine(), hint);
#else
    using Pd = dnnl::convolution_backward_weights::primitive_desc;
    const auto algorithm = dnnl::algorithm::convolution_direct;
    const Geometry& g = problem.g;
    const Pd pd = dbias.defined() ? Pd(onednn::engine(), algorithm, problem.x, problem.weight, problem.bias, problem.y, g.stride,
                                       g.dilation, g.padding, g.padding_end, hint, attr)
                                  : Pd(onednn::engine(), algorithm, problem.x, problem.weight, problem.y, g.stride, g.dilation,
                                       g.padding, g.padding_end, hint, attr);
#endif
    return onednn::Prepared{dnnl::convolution_backward_weights(pd),
                            problem.x,
                            pd.diff_weights_desc(),
                            problem.bias,
                            problem.y,
                            pd.scratchpad_desc(),
                            onednn::is_plain_loops(pd)};
  });
  if (p.plain_loops && dweight.dtype() != DType::f32) return false;
  const Tensor x = raw::channels_last(x_any), dy = raw::channels_last(dy_any);
  const Tensor target = with_groups(dweight, c.groups);
  onednn::run(p, {{DNNL_ARG_SRC, x.raw_data(), problem.x, &p.source},
                  {DNNL_ARG_DIFF_DST, dy.raw_data(), problem.y, &p.destination},
                  {DNNL_ARG_DIFF_WEIGHTS, target.raw_data(), onednn::describe(target), &p.weights, true},
                  {DNNL_ARG_DIFF_BIAS, dbias.defined() ? dbias.raw_data() : nullptr, problem.bias, &p.bias, true}});
  return true;
}

/// Visits every (output position, weight, input position) of one image and one group: the plain convolution, for f64.
template <class Visit>
void for_each_tap(const ConvParameters& c, const Shape& x, const Shape& weight, const Shape& y, int64_t n,
                  int64_t group, const Visit& visit) {
  const int64_t per_group = weight[0] / c.groups;
  for (int64_t o = group * per_group; o < (group + 1) * per_group; ++o)
    for (int64_t i = 0; i < weight[1]; ++i)
      for (int64_t kh = 0; kh < weight[2]; ++kh)
        for (int64_t kw = 0; kw < weight[3]; ++kw) {
          const int64_t w_at = ((o * weight[1] + i) * weight[2] + kh) * weight[3] + kw;
          for (int64_t oh = 0; oh < y[2]; ++oh) {
            const int64_t ih = oh * c.stride.h - c.padding.h + kh * c.dilation.h;
            if (ih < 0 || ih >= x[2]) continue;
            for (int64_t ow = 0; ow < y[3]; ++ow) {
              const int64_t iw = ow * c.stride.w - c.padding.w + kw * c.dilation.w;
              if (iw < 0 || iw >= x[3]) continue;
              visit(((n * y[1] + o) * y[2] + oh) * y[3] + ow, w_at,
                    ((n * x[1] + group * weight[1] + i) * x[2] + ih) * x[3] + iw);
            }
          }
        }
}

void forward_f64(const Tensor& x_any, const Tensor& weight_any, const Tensor& bias, const ConvParameters& c,
                 Activation activation, Tensor& out) {
  const Tensor x = raw::contiguous(x_any), weight = raw::contiguous(weight_any);
  Tensor y = zeros(out.sizes(), DType::f64);
  double* py = y.data<double>();
  const double *px = x.data<double>(), *pw = weight.data<double>();
  parallel_for(out.sizes()[0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n)
      for (int64_t group = 0; group < c.groups; ++group)
        for_each_tap(c, x.sizes(), weight.sizes(), y.sizes(), n, group,
                     [&](int64_t at_y, int64_t at_w, int64_t at_x) { py[at_y] += pw[at_w] * px[at_x]; });
  });
  bias_activation(y, bias, 1, activation, out);
}

void backward_data_f64(const Tensor& dy_any, const Tensor& weight_any, const ConvParameters& c, Tensor& dx) {
  const Tensor dy = raw::contiguous(dy_any), weight = raw::contiguous(weight_any);
  Tensor sum = zeros(dx.sizes(), DType::f64);
  double* px = sum.data<double>();
  const double *py = dy.data<double>(), *pw = weight.data<double>();
  for (int64_t n = 0; n < dx.sizes()[0]; ++n)
    for (int64_t group = 0; group < c.groups; ++group)
      for_each_tap(c, dx.sizes(), weight.sizes(), dy.sizes(), n, group,
                   [&](int64_t at_y, int64_t at_w, int64_t at_x) { px[at_x] += pw[at_w] * py[at_y]; });
  copy(sum, dx);
}

void backward_weight_f64(const Tensor& x_any, const Tensor& dy_any, const ConvParameters& c, Tensor& dweight,
                         Tensor& dbias) {
  const Tensor x = raw::contiguous(x_any), dy = raw::contiguous(dy_any);
  fill(dweight, 0);
  double* pw = dweight.data<double>();
  const double *py = dy.data<double>(), *px = x.data<double>();
  for (int64_t n = 0; n < x.sizes()[0]; ++n)
    for (int64_t group = 0; group < c.groups; ++group)
      for_each_tap(c, x.sizes(), dweight.sizes(), dy.sizes(), n, group,
                   [&](int64_t at_y, int64_t at_w, int64_t at_x) { pw[at_w] += px[at_x] * py[at_y]; });
  if (!dbias.defined()) return;
  Tensor kept = empty({1, dy.sizes()[1], 1, 1}, DType::f64);
  sum(dy, kept);
  copy(raw::reshape(kept, dbias.sizes()), dbias);
}

Tensor widened(const Tensor& x) { return x.defined() ? raw::to(x, DType::f32) : x; }

bool nothing_to_do(const Tensor& out) { return out.numel() == 0; }

[[noreturn]] void fail_dtype(DType dtype) { fail("conv", fmt::format("wants a floating dtype, got {}", name(dtype))); }

}  // namespace

void conv(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvParameters c, Activation activation,
          Tensor& out) {
  WEFT_ASSERT(out.is_channels_last() && (!bias.defined() || bias.is_contiguous()));
  if (nothing_to_do(out)) return;
  if (winograd_applies(x.sizes(), weight.sizes(), c, out.dtype()))
    return winograd_forward(raw::channels_last(x), weight, bias, c.padding, activation, out);
  switch (out.dtype()) {
    case DType::f32:
      forward_onednn(x, weight, bias, c, activation, out);
      return;
    case DType::f64:
      return forward_f64(x, weight, bias, c, activation, out);
    case DType::bf16:
    case DType::f16: {
      if (onednn::multiplies(out.dtype()) && forward_onednn(x, weight, bias, c, activation, out)) return;
      Tensor wide = empty_channels_last(out.sizes());
      conv(widened(x), widened(weight), widened(bias), c, activation, wide);
      return copy(wide, out);
    }
    default:
      fail_dtype(out.dtype());
  }
}

void conv_backward_data(const Tensor& dy, const Tensor& weight, ConvParameters c, Tensor& dx) {
  WEFT_ASSERT(dx.is_channels_last());
  if (nothing_to_do(dx)) return;
  if (dy.numel() == 0) return fill(dx, 0);
  if (winograd_applies(dx.sizes(), weight.sizes(), c, dx.dtype()))
    return winograd_backward_data(raw::channels_last(dy), weight, c.padding, dx);
  switch (dx.dtype()) {
    case DType::f32:
      backward_data_onednn(dy, weight, c, dx);
      return;
    case DType::f64:
      return backward_data_f64(dy, weight, c, dx);
    case DType::bf16:
    case DType::f16: {
      if (onednn::multiplies(dx.dtype()) && backward_data_onednn(dy, weight, c, dx)) return;
      Tensor wide = empty_channels_last(dx.sizes());
      conv_backward_data(widened(dy), widened(weight), c, wide);
      return copy(wide, dx);
    }
    default:
      fail_dtype(dx.dtype());
  }
}

void conv_backward_weight(const Tensor& x, const Tensor& dy, ConvParameters c, Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(dweight.is_contiguous() && (!dbias.defined() || dbias.is_contiguous()));
  if (nothing_to_do(dweight)) return;
  if (dy.numel() == 0) {
    fill(dweight, 0);
    if (dbias.defined()) fill(dbias, 0);
    return;
  }
  if (winograd_applies(x.sizes(), dweight.sizes(), c, dweight.dtype()))
    return winograd_backward_weight(raw::channels_last(x), raw::channels_last(dy), c.padding, dweight, dbias);
  switch (dweight.dtype()) {
    case DType::f32:
      backward_weight_onednn(x, dy, c, dweight, dbias);
      return;
    case DType::f64:
      return backward_weight_f64(x, dy, c, dweight, dbias);
    case DType::bf16:
    case DType::f16: {
      if (onednn::multiplies(dweight.dtype()) && backward_weight_onednn(x, dy, c, dweight, dbias)) return;
      Tensor wide = empty(dweight.sizes()), wide_bias = dbias.defined() ? empty(dbias.sizes()) : Tensor();
      conv_backward_weight(widened(x), widened(dy), c, wide, wide_bias);
      if (dbias.defined()) copy(wide_bias, dbias);
      return copy(wide, dweight);
    }
    default:
      fail_dtype(dweight.dtype());
  }
}

}  // namespace weft::cpu_kernels
