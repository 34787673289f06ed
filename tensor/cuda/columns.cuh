// A convolution's input as the rows of a matrix product, "columns": one row an output pixel, with all that its window
// sees as [groups, kh, kw, channels of the group]. Images are channels-last. Back from columns to images every input
// pixel gathers what is its own, in a fixed order.
#pragma once

#include "tensor/cuda/map.cuh"

namespace weft::WEFT_GPU {

/// The sizes of one convolution.
struct ConvSizes {
  int64_t n, c, h, w, o, kh, kw, oh, ow;
  ConvParameters p;

  ConvSizes(const Shape& x, const Shape& weight, const Shape& y, const ConvParameters& p)
      : n(x[0]), c(x[1]), h(x[2]), w(x[3]), o(y[1]), kh(weight[2]), kw(weight[3]), oh(y[2]), ow(y[3]), p(p) {
    WEFT_ASSERT(oh * ow < kMostIndex && h < kMostIndex && w * c < kMostIndex && row() < kMostIndex);
  }
  int64_t pixels() const { return n * oh * ow; }
  int64_t group_in() const { return c / p.groups; }
  int64_t group_out() const { return o / p.groups; }
  /// Elements of one group in a row of columns, and of the whole row.
  int64_t group_row() const { return kh * kw * group_in(); }
  int64_t row() const { return kh * kw * c; }
  /// Columns are the images themselves.
  bool is_product() const {
    return kh == 1 && kw == 1 && p.stride == Pair(1) && p.padding == Pair(0) && oh == h && ow == w;
  }

  static constexpr int64_t kMostIndex = int64_t{1} << 30;
};

struct Im2col {
  Divider channels, kw, kh, groups, ow, image;  // channels: chunks of a group; image: its output pixels
  uint32_t chunks, first;                       // first: place of the first row in its image
  int32_t h, w, c, group_in;
  int32_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w;
};

template <class Bits, int V>
__global__ void __launch_bounds__(kBlock) im2col_kernel(Im2col a, const Bits* x, Bits* columns) {
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.chunks; i += step) {
    uint32_t rest = i;
    const auto next = [&rest](const Divider& d) { return static_cast<int32_t>(d.split(rest)); };
    const int32_t channel = next(a.channels) * V, kw = next(a.kw), kh = next(a.kh), group = next(a.groups);
    rest += a.first;
    const int32_t place = next(a.image);
    const int64_t image = rest;
    rest = static_cast<uint32_t>(place);
    const int32_t ow = next(a.ow), oh = static_cast<int32_t>(rest);
    const int32_t h = oh * a.stride_h - a.padding_h + kh * a.dilation_h;
    const int32_t w = ow * a.stride_w - a.padding_w + kw * a.dilation_w;
    Pack<Bits, V> values{};
    if (h >= 0 && h < a.h && w >= 0 && w < a.w)
      values = *reinterpret_cast<const Pack<Bits, V>*>(x + ((image * a.h + h) * a.w + w) * a.c + group * a.group_in +
                                                       channel);
    *reinterpret_cast<Pack<Bits, V>*>(columns + static_cast<int64_t>(i) * V) = values;
  }
}

struct Col2im {
  Divider channels, groups, w, rows;  // channels: chunks of a group; rows: of each image that are written
  Divider stride_h, stride_w;
  uint32_t chunks;
  int32_t first_row;     // of the images
  int32_t first_oh, oh;  // rows of output pixels that there are columns of
  int32_t h, ow, kh, kw, group_in;
  int32_t padding_h, padding_w, dilation_h, dilation_w;
};

/// The output pixel whose window, at one of its places, lies on an input pixel `at` ahead of that place; none: -1.
__device__ __forceinline__ int32_t window_at(int32_t at, const Divider& stride) {
  if (at < 0) return -1;
  const uint32_t pixel = stride(static_cast<uint32_t>(at));
  return pixel * stride.divisor == static_cast<uint32_t>(at) ? static_cast<int32_t>(pixel) : -1;
}

/// columns are in T's compute type; dx begins at the first image, whole rows of which are `first_row` ahead.
template <class T, int V>
__global__ void __launch_bounds__(kBlock) col2im_kernel(Col2im a, const compute_t<T>* columns, T* dx) {
  const uint32_t step = gridDim.x * blockDim.x;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < a.chunks; i += step) {
    uint32_t rest = i;
    const auto next = [&rest](const Divider& d) { return static_cast<int32_t>(d.split(rest)); };
    const int32_t channel = next(a.channels) * V, group = next(a.groups), w = next(a.w);
    const int32_t h = next(a.rows) + a.first_row;
    const int64_t image = rest;
    compute_t<T> sums[V] = {};
    for (int32_t kh = 0; kh < a.kh; ++kh) {
      const int32_t oh = window_at(h + a.padding_h - kh * a.dilation_h, a.stride_h) - a.first_oh;
      if (oh < 0 || oh >= a.oh) continue;
      for (int32_t kw = 0; kw < a.kw; ++kw) {
        const int32_t ow = window_at(w + a.padding_w - kw * a.dilation_w, a.stride_w);
        if (ow < 0 || ow >= a.ow) continue;
        const int64_t pixel = (image * a.oh + oh) * a.ow + ow;
        const int64_t tap = ((pixel * a.groups.divisor + group) * a.kh + kh) * a.kw + kw;
        const auto values = *reinterpret_cast<const Pack<compute_t<T>, V>*>(columns + tap * a.group_in + channel);
        WEFT_UNROLL
        for (int k = 0; k < V; ++k) sums[k] += values.v[k];
      }
    }
    Pack<T, V> out;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) out.v[k] = static_cast<T>(sums[k]);
    const int64_t pixel = (image * a.h + h) * a.w.divisor + w;
    *reinterpret_cast<Pack<T, V>*>(dx + (pixel * a.groups.divisor + group) * a.group_in + channel) = out;
  }
}

/// Rows [first, first + rows) of the columns of x, which begins at its first image.
template <class Bits>
void im2col(const ConvSizes& s, int64_t first, int64_t rows, const void* x, void* columns) {
  constexpr int V = 16 / static_cast<int>(sizeof(Bits));
  const auto* from = static_cast<const Bits*>(x) + first / (s.oh * s.ow) * s.h * s.w * s.c;
  auto* to = static_cast<Bits*>(columns);
  const bool packed = s.group_in() % V == 0 && packs_fit<V>(from, to);
  const int64_t width = packed ? V : 1;
  const Im2col a{.channels = Divider(s.group_in() / width),
                 .kw = Divider(s.kw),
                 .kh = Divider(s.kh),
                 .groups = Divider(s.p.groups),
                 .ow = Divider(s.ow),
                 .image = Divider(s.oh * s.ow),
                 .chunks = static_cast<uint32_t>(rows * s.row() / width),
                 .first = static_cast<uint32_t>(first % (s.oh * s.ow)),
                 .h = static_cast<int32_t>(s.h),
                 .w = static_cast<int32_t>(s.w),
                 .c = static_cast<int32_t>(s.c),
                 .group_in = static_cast<int32_t>(s.group_in()),
                 .stride_h = static_cast<int32_t>(s.p.stride.h),
                 .stride_w = static_cast<int32_t>(s.p.stride.w),
                 .padding_h = static_cast<int32_t>(s.p.padding.h),
                 .padding_w = static_cast<int32_t>(s.p.padding.w),
                 .dilation_h = static_cast<int32_t>(s.p.dilation.h),
                 .dilation_w = static_cast<int32_t>(s.p.dilation.w)};
  launch(blocks_for(a.chunks), kBlock, 0, packed ? im2col_kernel<Bits, V> : im2col_kernel<Bits, 1>, a, from, to);
}

/// The part of dx that one launch writes: rows [first_row, first_row + rows) of `images` images from `first_image` on,
/// from columns of the output rows [first_oh, first_oh + oh).
struct Gather {
  int64_t first_image = 0, images = 1, first_row = 0, rows = 1, first_oh = 0, oh = 0;
};

template <class T>
void col2im(const ConvSizes& s, const Gather& part, const Tensor& columns, Tensor& dx) {
  using Sum = compute_t<T>;
  constexpr int V = 16 / static_cast<int>(sizeof(Sum));
  T* const to = dx.data<T>() + part.first_image * s.h * s.w * s.c;
  const auto* from = part.oh > 0 ? columns.data<Sum>() : nullptr;
  const bool packed = s.group_in() % V == 0 && packs_fit<V>(from, to);
  const int64_t width = packed ? V : 1;
  const Col2im a{.channels = Divider(s.group_in() / width),
                 .groups = Divider(s.p.groups),
                 .w = Divider(s.w),
                 .rows = Divider(part.rows),
                 .stride_h = Divider(s.p.stride.h),
                 .stride_w = Divider(s.p.stride.w),
                 .chunks = static_cast<uint32_t>(part.images * part.rows * s.w * s.c / width),
                 .first_row = static_cast<int32_t>(part.first_row),
                 .first_oh = static_cast<int32_t>(part.first_oh),
                 .oh = static_cast<int32_t>(part.oh),
                 .h = static_cast<int32_t>(s.h),
                 .ow = static_cast<int32_t>(s.ow),
                 .kh = static_cast<int32_t>(s.kh),
                 .kw = static_cast<int32_t>(s.kw),
                 .group_in = static_cast<int32_t>(s.group_in()),
                 .padding_h = static_cast<int32_t>(s.p.padding.h),
                 .padding_w = static_cast<int32_t>(s.p.padding.w),
                 .dilation_h = static_cast<int32_t>(s.p.dilation.h),
                 .dilation_w = static_cast<int32_t>(s.p.dilation.w)};
  launch(blocks_for(a.chunks), kBlock, 0, packed ? col2im_kernel<T, V> : col2im_kernel<T, 1>, a, from, to);
}

}  // namespace weft::WEFT_GPU
