// Convolutions of images, channels-last from input to output: cuDNN's where it has a plan, else matrix products over
// columns of the input, cut into parts of bounded memory. Sums are in f32 (f64 in f64), and weights are channels-last
// inside, which is what tensor cores and the columns want.
#include "tensor/cuda/columns.cuh"
#include "tensor/cuda/cudnn.h"
#include "tensor/cuda/product.h"
#include "tensor/cuda/workspace.h"
#include "tensor/precision.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

using cudnn::Direction;

constexpr int64_t kMostColumnBytes = int64_t{64} << 20;

/// False where cuDNN has no plan. As `launch`, nothing runs where a captured step's values are refreshed. x, w and y
/// are the operands of the forward direction.
bool by_cudnn(Direction direction, const Tensor& x, const Tensor& w, const Tensor& y, const ConvParameters& p,
              cudnn::Epilogue epilogue = cudnn::Epilogue::none, const Tensor& bias = {}) {
  cudnn::ConvKey key = cudnn::describe(direction, x, w, y, p);
  key.tf32 = tf32_allowed();
  key.deterministic = !nondeterministic_allowed();
  key.epilogue = epilogue;
  if (StepValues::refreshing()) return true;
  Workspace scratch;
  return cudnn::convolution(
      key, {x.raw_data(), w.raw_data(), y.raw_data(), bias.defined() ? bias.raw_data() : nullptr},
      [&](int64_t bytes) {
        scratch = Workspace(bytes, y.device());
        return scratch.data();
      },
      stream());
}

/// All of bias and activation, or none of it.
cudnn::Epilogue cudnn_epilogue(bool bias, Activation activation) {
  using cudnn::Epilogue;
  switch (activation) {
    case Activation::none:
      return bias ? Epilogue::bias : Epilogue::none;
    case Activation::relu:
      return bias ? Epilogue::bias_relu : Epilogue::relu;
    default:
      return Epilogue::none;
  }
}

/// The pixels [first, first + rows) of a channels-last image as a matrix.
Tensor pixels(const Tensor& x, int64_t first, int64_t rows) {
  const int64_t channels = x.sizes()[1];
  return raw::view(x, {rows, channels}, {channels, 1}, x.offset() + first * channels);
}

/// Forward with bias and activation in cuDNN's pass, or in one behind it.
bool forward_by_cudnn(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvParameters& p,
                      Activation activation, Tensor& out) {
  const cudnn::Epilogue epilogue = cudnn_epilogue(bias.defined(), activation);
  const bool fuses = epilogue != cudnn::Epilogue::none;
  if (fuses && by_cudnn(Direction::forward, x, w, out, p, epilogue, bias)) return true;
  if (!by_cudnn(Direction::forward, x, w, out, p)) return false;
  Tensor rows = pixels(out, 0, out.numel() / out.sizes()[1]);
  finish(bias, activation, rows);
  return true;
}

/// How many of `all` are worked on at once, each with `bytes` of columns.
int64_t at_once(int64_t all, int64_t bytes) {
  const int64_t fit = std::max<int64_t>(1, kMostColumnBytes / bytes);
#ifdef __CUDACC__
  return std::min(all, fit);
#else  // the emulator's convolutions are small, and are to be cut all the same
  return std::min((all + 2) / 3, fit);
#endif
}

/// Calls use(first, rows, columns) for all rows of x's columns, part by part.
template <class Use>
void for_columns(const ConvSizes& s, const Tensor& x, const Use& use) {
  if (s.is_product()) return use(int64_t{0}, s.pixels(), x.raw_data());
  const int64_t most = at_once(s.pixels(), s.row() * size_of(x.dtype()));
  const Tensor columns = empty({most, s.row()}, {x.dtype(), x.device()});
  for (int64_t first = 0; first < s.pixels(); first += most) {
    const int64_t rows = std::min(most, s.pixels() - first);
    switch (size_of(x.dtype())) {
      case 8:
        im2col<uint64_t>(s, first, rows, x.raw_data(), columns.raw_data());
        break;
      case 4:
        im2col<uint32_t>(s, first, rows, x.raw_data(), columns.raw_data());
        break;
      default:
        im2col<uint16_t>(s, first, rows, x.raw_data(), columns.raw_data());
    }
    use(first, rows, columns.raw_data());
  }
}

// Operands of the products, a matrix a group side by side: columns, images' pixels, weights.
blas::Factor columns_of(const ConvSizes& s, const void* data) {
  return {.data = data, .row = s.row(), .batch = s.group_row()};
}
blas::Factor pixels_of(const ConvSizes& s, const Tensor& rows) {
  return {.data = rows.raw_data(), .row = s.o, .batch = s.group_out()};
}
blas::Factor weights_of(const ConvSizes& s, const Tensor& w) {
  return {.data = w.raw_data(), .row = s.group_row(), .batch = s.group_out() * s.group_row()};
}

void forward_by_columns(const ConvSizes& s, const Tensor& x, const Tensor& w, const Tensor& bias, Activation activation,
                        Tensor& out) {
  blas::Gemm g{.n = s.group_out(),
               .k = s.group_row(),
               .batch = s.p.groups,
               .dtype = out.dtype(),
               .out_dtype = out.dtype(),
               .b = weights_of(s, w),
               .c_row = s.o,
               .c_batch = s.group_out(),
               .bias_batch = s.group_out()};
  g.b.transposed = true;
  for_columns(s, x, [&](int64_t first, int64_t rows, const void* columns) {
    Tensor part = pixels(out, first, rows);
    g.m = rows;
    g.a = columns_of(s, columns);
    g.c = part.raw_data();
    product(g, bias, activation, part);
  });
}

/// The columns of dx that `rows` pixels of dy, `first` on, contribute to.
void columns_of_gradient(const ConvSizes& s, const Tensor& dy, const Tensor& w, int64_t first, int64_t rows,
                         DType dtype, void* columns) {
  blas::gemm({.m = rows,
              .n = s.group_row(),
              .k = s.group_out(),
              .batch = s.p.groups,
              .dtype = dy.dtype(),
              .out_dtype = dtype,
              .a = pixels_of(s, pixels(dy, first, rows)),
              .b = weights_of(s, w),
              .c = columns,
              .c_row = s.row(),
              .c_batch = s.group_row()});
}

DType sum_type(DType dtype) { return dtype == f64 ? f64 : f32; }

/// The output rows [first, first + count) whose windows reach rows [begin, end) of the input.
void reached_by(const ConvSizes& s, int64_t begin, int64_t end, int64_t& first, int64_t& count) {
  const int64_t span = (s.kh - 1) * s.p.dilation.h, stride = s.p.stride.h;
  first = (std::max<int64_t>(0, begin + s.p.padding.h - span) + stride - 1) / stride;
  count = std::max<int64_t>(0, std::min(s.oh - 1, (end - 1 + s.p.padding.h) / stride) - first + 1);
}

/// Rows of one input image whose output rows' columns have room.
int64_t input_rows_at_once(const ConvSizes& s, int64_t bytes_of_output_row) {
  const int64_t span = (s.kh - 1) * s.p.dilation.h;
  const int64_t output_rows = std::max<int64_t>(1, kMostColumnBytes / bytes_of_output_row);
  const int64_t room = output_rows >= s.oh ? s.h : std::max<int64_t>(1, (output_rows - 1) * s.p.stride.h - span + 1);
  const int64_t fit = std::min(room, ConvSizes::kMostIndex / (s.w * s.c));
#ifdef __CUDACC__
  return std::min(s.h, fit);
#else
  return std::min((s.h + 2) / 3, fit);
#endif
}

/// Whole images at a time, or parts of one where that is too much.
void backward_data_by_columns(const ConvSizes& s, const Tensor& dy, const Tensor& w, Tensor& dx) {
  if (s.is_product()) {
    blas::gemm({.m = s.pixels(),
                .n = s.group_in(),
                .k = s.group_out(),
                .batch = s.p.groups,
                .dtype = dx.dtype(),
                .out_dtype = dx.dtype(),
                .a = pixels_of(s, dy),
                .b = weights_of(s, w),
                .c = dx.raw_data(),
                .c_row = s.c,
                .c_batch = s.group_in()});
    return;
  }
  const DType dtype = sum_type(dx.dtype());
  const int64_t row_bytes = s.ow * s.row() * size_of(dtype), image_bytes = s.oh * row_bytes;
  Gather part{.rows = s.h};
  if (s.n > 1 && image_bytes <= kMostColumnBytes && s.h * s.w * s.c <= ConvSizes::kMostIndex) {
    part.images = std::min(at_once(s.n, image_bytes), ConvSizes::kMostIndex / (s.h * s.w * s.c));
  } else {
    part.rows = input_rows_at_once(s, row_bytes);
  }
  const Gather most = part;
  for (; part.first_image < s.n; part.first_image += most.images) {
    part.images = std::min(most.images, s.n - part.first_image);
    for (part.first_row = 0; part.first_row < s.h; part.first_row += most.rows) {
      part.rows = std::min(most.rows, s.h - part.first_row);
      reached_by(s, part.first_row, part.first_row + part.rows, part.first_oh, part.oh);
      if (part.images > 1) part.first_oh = 0, part.oh = s.oh;  // all pixels in one row
      const int64_t pixels = part.images * part.oh * s.ow;
      Tensor columns = empty({pixels, s.row()}, {dtype, dx.device()});
      if (pixels > 0)
        columns_of_gradient(s, dy, w, (part.first_image * s.oh + part.first_oh) * s.ow, pixels, dtype,
                            columns.raw_data());
      dispatch_floating("conv", dx.dtype(), [&]<class T>() { col2im<T>(s, part, columns, dx); });
    }
  }
}

/// dw is channels-last, in the type of sums.
void backward_weight_by_columns(const ConvSizes& s, const Tensor& x, const Tensor& dy, Tensor& dw) {
  blas::Gemm g{.m = s.group_out(),
               .n = s.group_row(),
               .batch = s.p.groups,
               .dtype = x.dtype(),
               .out_dtype = dw.dtype(),
               .c = dw.raw_data(),
               .c_row = s.group_row(),
               .c_batch = s.group_out() * s.group_row()};
  for_columns(s, x, [&](int64_t first, int64_t rows, const void* columns) {
    g.k = rows;
    g.a = pixels_of(s, pixels(dy, first, rows));
    g.a.transposed = true;
    g.b = columns_of(s, columns);
    blas::gemm(g);
    g.accumulate = true;
  });
}

/// out itself where it is channels-last and of `dtype`, else new memory to be copied to it.
Tensor channels_last_for(const Tensor& out, DType dtype) {
  return out.is_channels_last() && out.dtype() == dtype ? out : empty_channels_last(out.sizes(), {dtype, out.device()});
}

}  // namespace

void conv(const Tensor& x_any, const Tensor& weight, const Tensor& bias, ConvParameters p, Activation activation,
          Tensor& out) {
  WEFT_ASSERT(out.is_channels_last() && (!bias.defined() || bias.is_contiguous()));
  if (out.numel() == 0) return;
  const Tensor x = raw::channels_last(x_any), w = raw::channels_last(weight);
  if (forward_by_cudnn(x, w, bias, p, activation, out)) return;
  forward_by_columns({x.sizes(), w.sizes(), out.sizes(), p}, x, w, bias, activation, out);
}

void conv_backward_data(const Tensor& dy_any, const Tensor& weight, ConvParameters p, Tensor& dx) {
  WEFT_ASSERT(dx.is_channels_last());
  if (dx.numel() == 0) return;
  if (dy_any.numel() == 0) return fill(dx, 0);
  const Tensor dy = raw::channels_last(dy_any), w = raw::channels_last(weight);
  if (by_cudnn(Direction::backward_data, dx, w, dy, p)) return;
  backward_data_by_columns({dx.sizes(), w.sizes(), dy.sizes(), p}, dy, w, dx);
}

void conv_backward_weight(const Tensor& x_any, const Tensor& dy_any, ConvParameters p, Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(dweight.is_contiguous() && (!dbias.defined() || dbias.is_contiguous()));
  if (dweight.numel() == 0) return;
  if (dy_any.numel() == 0) {
    fill(dweight, 0);
    if (dbias.defined()) fill(dbias, 0);
    return;
  }
  const Tensor x = raw::channels_last(x_any), dy = raw::channels_last(dy_any);
  if (dbias.defined()) {
    Tensor sums = raw::view(dbias, {1, dbias.numel(), 1, 1}, {dbias.numel(), 1, 1, 1}, dbias.offset());
    sum(dy, sums);
  }
  Tensor dw = channels_last_for(dweight, dweight.dtype());
  if (!by_cudnn(Direction::backward_weight, x, dw, dy, p)) {
    dw = channels_last_for(dweight, sum_type(dweight.dtype()));
    backward_weight_by_columns({x.sizes(), dweight.sizes(), dy.sizes(), p}, x, dy, dw);
  }
  if (dw.ref() != dweight.ref()) copy(dw, dweight);
}

}  // namespace weft::WEFT_GPU
