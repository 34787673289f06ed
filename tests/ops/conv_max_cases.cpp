// Cases of convolution and maximum over time.
#include "autograd/ops/conv_max.h"

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

Ref reference(const Refs& in, int64_t pool) {
  const Ref &x = in[0], &w = in[1];
  const int64_t kernel = w.sizes[2], places = (x.sizes[2] - kernel + 1) / pool * pool;
  Ref y({x.sizes[0], w.sizes[0]});
  for (int64_t n = 0; n < y.sizes[0]; ++n)
    for (int64_t o = 0; o < y.sizes[1]; ++o)
      for (int64_t l = 0; l < places; ++l) {
        double v = in.size() > 2 ? in[2][o] : 0;
        for (int64_t c = 0; c < w.sizes[1]; ++c)
          for (int64_t j = 0; j < kernel; ++j) v += w(o, c, j) * x(n, c, l + j);
        y(n, o) = std::max(y(n, o), v);
      }
  return y;
}

OpCase conv_max_case(const char* name, Shape x, Shape weight, int64_t pool = 1, bool bias = true) {
  OpCase c{.name = name,
           .inputs = {{x}, {weight}},
           .run = [pool, bias](
                      const Tensors& in) { return conv1d_max(in[0], in[1], bias ? in[2] : Tensor(), {.pool = pool}); },
           .reference = [pool](const Refs& in) { return reference(in, pool); },
           .dtypes = {f32, f64, bf16, f16},
           .tolerance = 1e-5};
  if (bias) c.inputs.push_back({{weight[0]}});
  return c;
}

}  // namespace

OpCases conv_max_cases() {
  // Channels of several panels and a part of one; enough places for tiles of them, and some over.
  OpCase wide = conv_max_case("conv1d_max/wide", {2, 5, 41}, {70, 5, 3});
  wide.differences = false;  // too many of them
  return {
      conv_max_case("conv1d_max/plain", {2, 3, 9}, {4, 3, 3}, 2),
      wide,
      conv_max_case("conv1d_max/places_left_out", {2, 2, 10}, {3, 2, 4}, 3),
      conv_max_case("conv1d_max/no_bias", {2, 3, 8}, {4, 3, 2}, 1, false),
      conv_max_case("conv1d_max/one_place", {3, 2, 3}, {5, 2, 3}),
      conv_max_case("conv1d_max/one_by_one", {2, 4, 6}, {3, 4, 1}, 2),
      conv_max_case("conv1d_max/one_channel", {1, 1, 20}, {2, 1, 5}),
  };
}

}  // namespace weft::testing
