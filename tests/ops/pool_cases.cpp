// Cases of pooling.
#include "autograd/ops/pool.h"

#include <algorithm>
#include <cmath>

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

/// Windows by plain loops. The output size is counted: windows that end inside the padded input, and with ceil_mode one
/// more that starts inside the input.
Ref pool(const Ref& x, const Pool2dOptions& options, bool average) {
  Pair k = options.kernel, s = options.stride, p = options.padding;
  if (s.h == 0) s = k;
  auto count = [&](int64_t size, int64_t kernel, int64_t stride, int64_t padding) {
    int64_t n = 0;
    for (int64_t start = -padding; start < size; start += stride)
      if (options.ceil_mode ? n == 0 || start - stride + kernel < size + padding : start + kernel <= size + padding)
        ++n;
    return n;
  };
  const int64_t height = x.sizes[2], width = x.sizes[3];
  Ref y({x.sizes[0], x.sizes[1], count(height, k.h, s.h, p.h), count(width, k.w, s.w, p.w)});
  for (int64_t n = 0; n < y.sizes[0]; ++n)
    for (int64_t c = 0; c < y.sizes[1]; ++c)
      for (int64_t oh = 0; oh < y.sizes[2]; ++oh)
        for (int64_t ow = 0; ow < y.sizes[3]; ++ow) {
          double best = -INFINITY, total = 0;
          int64_t inside = 0, padded = 0;
          for (int64_t h = oh * s.h - p.h; h < oh * s.h - p.h + k.h; ++h)
            for (int64_t w = ow * s.w - p.w; w < ow * s.w - p.w + k.w; ++w) {
              padded += h < height + p.h && w < width + p.w;
              if (h < 0 || h >= height || w < 0 || w >= width) continue;
              ++inside;
              best = std::max(best, x(n, c, h, w));
              total += x(n, c, h, w);
            }
          y(n, c, oh, ow) = average ? total / static_cast<double>(options.count_padding ? padded : inside) : best;
        }
  return y;
}

OpCase max_case(const char* name, Shape sizes, Pool2dOptions o, std::vector<In> bench = {}) {
  return {.name = name,
          .inputs = {{.sizes = sizes, .distinct = true}},
          .run = [o](const Tensors& x) { return max_pool2d(x[0], o); },
          .reference = [o](const Refs& x) { return pool(x[0], o, false); },
          .dtypes = {f32, f64, bf16, f16},
          .bench = bench};
}

OpCase avg_case(const char* name, Shape sizes, Pool2dOptions o, std::vector<In> bench = {}) {
  return {.name = name,
          .inputs = {{sizes}},
          .run = [o](const Tensors& x) { return avg_pool2d(x[0], o); },
          .reference = [o](const Refs& x) { return pool(x[0], o, true); },
          .dtypes = {f32, f64, bf16, f16},
          .bench = bench};
}

/// The reference of [N, C, L] or [N, C, …] as an image of height 1.
Ref as_row(const Ref& x) {
  Ref image = x;
  image.sizes = {x.sizes[0], x.sizes[1], 1, x.numel() / (x.sizes[0] * x.sizes[1])};
  return image;
}

Ref with_sizes(Ref y, Shape sizes) {
  y.sizes = sizes;
  return y;
}

}  // namespace

OpCases pool_cases() {
  const std::vector<In> large{{.sizes = {64, 64, 24, 24}}};
  return {
      max_case("max_pool2d", {2, 5, 6, 8}, {.kernel = 2}, large),
      max_case("max_pool2d/many_channels", {1, 300, 4, 6}, {.kernel = 2}),
      max_case("max_pool2d/overlap", {2, 19, 7, 6}, {.kernel = 3, .stride = 2, .padding = 1}, large),
      max_case("max_pool2d/overlap_one_way", {2, 3, 7, 9}, {.kernel = {2, 3}, .stride = {2, 1}, .padding = {1, 0}}),
      max_case("max_pool2d/gaps", {1, 4, 9, 10}, {.kernel = 2, .stride = 3}),
      max_case("max_pool2d/ceil", {1, 3, 8, 10}, {.kernel = 3, .stride = 2, .ceil_mode = true}),
      max_case("max_pool2d/wide_channels", {2, 16, 5, 6}, {.kernel = 3, .stride = 2, .padding = 1}),
      max_case("max_pool2d/large_window", {1, 3, 9, 9}, {.kernel = 5, .stride = 1, .padding = 2}),
      max_case("max_pool2d/very_large_window", {2, 35, 11, 10}, {.kernel = 9, .stride = 4, .padding = 3}),
      {.name = "max_pool1d",
       .inputs = {{.sizes = {2, 3, 11}, .distinct = true}},
       .run = [](const Tensors& x) { return max_pool1d(x[0], {.kernel = 3, .stride = 2, .padding = 1}); },
       .reference =
           [](const Refs& x) {
             return with_sizes(pool(as_row(x[0]), {.kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}}, false),
                               {2, 3, 6});
           },
       .bench = {{.sizes = {64, 256, 498}}}},
      {.name = "global_max_pool",
       .inputs = {{.sizes = {2, 3, 4, 5}, .distinct = true}},
       .run = [](const Tensors& x) { return global_max_pool(x[0]); },
       .reference =
           [](const Refs& x) {
             return with_sizes(pool(as_row(x[0]), {.kernel = {1, 20}}, false), {2, 3});
           },
       .bench = {{.sizes = {64, 256, 249}}}},
      avg_case("avg_pool2d", {2, 5, 6, 8}, {.kernel = 2}, large),
      avg_case("avg_pool2d/many_channels", {1, 300, 5, 4}, {.kernel = 3, .stride = 1}),
      avg_case("avg_pool2d/wide_channels", {2, 16, 5, 6}, {.kernel = 3, .stride = 2, .padding = 1}),
      avg_case("avg_pool2d/padding", {2, 3, 7, 6}, {.kernel = 3, .stride = 2, .padding = 1}),
      avg_case("avg_pool2d/padding_not_counted", {2, 3, 7, 6},
               {.kernel = 3, .stride = 2, .padding = 1, .count_padding = false}),
      avg_case("avg_pool2d/ceil", {1, 3, 8, 7}, {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}),
      avg_case("avg_pool2d/gaps", {1, 3, 9, 10}, {.kernel = 2, .stride = 3}),
      avg_case("avg_pool2d/large_window", {1, 3, 13, 12}, {.kernel = 9, .stride = 3, .padding = 4}),
      avg_case("avg_pool2d/whole_plane", {2, 40, 9, 8}, {.kernel = {9, 8}}),
      {.name = "avg_pool1d",
       .inputs = {{{2, 3, 11}}},
       .run = [](const Tensors& x) { return avg_pool1d(x[0], {.kernel = 4, .stride = 3, .ceil_mode = true}); },
       .reference =
           [](const Refs& x) {
             return with_sizes(pool(as_row(x[0]), {.kernel = {1, 4}, .stride = {1, 3}, .ceil_mode = true}, true),
                               {2, 3, 4});
           }},
      {.name = "global_avg_pool",
       .inputs = {{{2, 3, 4, 5}}},
       .run = [](const Tensors& x) { return global_avg_pool(x[0]); },
       .reference =
           [](const Refs& x) {
             return with_sizes(pool(as_row(x[0]), {.kernel = {1, 20}}, true), {2, 3});
           },
       .bench = {{.sizes = {64, 512, 14, 14}}}},
  };
}

}  // namespace weft::testing
