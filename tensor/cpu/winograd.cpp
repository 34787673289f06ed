// F(2x2, 3x3): tiles of 4x4 inputs are transformed, multiplied channel by channel at 16 points, and transformed back. A
// block of tiles stays in the second-level cache from the first transform to the last.
#include "tensor/cpu/winograd.h"

#include <array>
#include <cstring>
#include <vector>

#include "tensor/cpu/vector_product.h"
#include "tensor/kernels.h"
#include "tensor/threads.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

constexpr int64_t kPoints = 16;  // of a transformed 4x4 tile
constexpr int64_t kBlock = 48;   // tiles; a multiple of all row counts of the products below

/// Floats from one point's [kBlock, channels] to the next. A vector more than it takes, so that the 16 points of a tile
/// do not fall on the same lines of the first-level cache.
int64_t point_step(int64_t channels) { return kBlock * channels + kLanes; }

/// Where the 2x2 output tiles of an image lie.
struct Tiles {
  int64_t height, width;  // of the input plane
  int64_t out_height, out_width;
  int64_t rows, columns;  // of tiles
  Pair padding;

  Tiles(const Shape& in, const Shape& out, Pair padding)
      : height(in[2]),
        width(in[3]),
        out_height(out[2]),
        out_width(out[3]),
        rows((out[2] + 1) / 2),
        columns((out[3] + 1) / 2),
        padding(padding) {}
  int64_t per_image() const { return rows * columns; }
};

struct Tile {
  int64_t image, row, column;
};

Tile tile_at(const Tiles& tiles, int64_t index) {
  const int64_t inside = index % tiles.per_image();
  return {index / tiles.per_image(), inside / tiles.columns, inside % tiles.columns};
}

/// Bᵀ d B of one tile and 16 channels, to 16 places `step` apart.
void transform_input(const Vector (&d)[4][4], float* to, int64_t step) {
  Vector r[4][4];
  for (int j = 0; j < 4; ++j) {
    r[0][j] = d[0][j] - d[2][j];
    r[1][j] = d[1][j] + d[2][j];
    r[2][j] = d[2][j] - d[1][j];
    r[3][j] = d[1][j] - d[3][j];
  }
  for (int i = 0; i < 4; ++i, to += 4 * step) {
    store_vector(to, r[i][0] - r[i][2]);
    store_vector(to + step, r[i][1] + r[i][2]);
    store_vector(to + 2 * step, r[i][2] - r[i][1]);
    store_vector(to + 3 * step, r[i][1] - r[i][3]);
  }
}

/// V, a [kBlock, channels] for each point, of the tiles [first, last).
void transform_inputs(const Tiles& tiles, const float* x, int64_t channels, int64_t first, int64_t last, float* v) {
  const std::vector<float> outside(static_cast<size_t>(channels), 0.0f);
  for (int64_t t = first; t < last; ++t) {
    const Tile tile = tile_at(tiles, t);
    const int64_t top = 2 * tile.row - tiles.padding.h, left = 2 * tile.column - tiles.padding.w;
    const float* const image = x + tile.image * tiles.height * tiles.width * channels;
    const bool whole = top >= 0 && left >= 0 && top + 4 <= tiles.height && left + 4 <= tiles.width;
    const float* pixel[4][4];
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j < 4; ++j) {
        const int64_t h = top + i, w = left + j;
        const bool inside = whole || (h >= 0 && h < tiles.height && w >= 0 && w < tiles.width);
        pixel[i][j] = inside ? image + (h * tiles.width + w) * channels : outside.data();
      }
    for (int64_t c = 0; c < channels; c += kLanes) {
      Vector d[4][4];
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) d[i][j] = load_vector(pixel[i][j] + c);
      transform_input(d, v + (t - first) * channels + c, point_step(channels));
    }
  }
}

/// G g Gᵀ of one 3x3 kernel, turned by 180 degrees where wanted.
std::array<float, kPoints> transform_kernel(const float* g, bool turned) {
  float r[4][3];
  auto at = [&](int i, int j) { return g[turned ? 8 - 3 * i - j : 3 * i + j]; };
  for (int j = 0; j < 3; ++j) {
    r[0][j] = at(0, j);
    r[1][j] = 0.5f * (at(0, j) + at(1, j) + at(2, j));
    r[2][j] = 0.5f * (at(0, j) - at(1, j) + at(2, j));
    r[3][j] = at(2, j);
  }
  std::array<float, kPoints> u{};
  for (size_t i = 0; i < 4; ++i) {
    u[4 * i] = r[i][0];
    u[4 * i + 1] = 0.5f * (r[i][0] + r[i][1] + r[i][2]);
    u[4 * i + 2] = 0.5f * (r[i][0] - r[i][1] + r[i][2]);
    u[4 * i + 3] = r[i][2];
  }
  return u;
}

/// All kernels of weight [out, in, 3, 3]: [points, in, out], or [points, out, in] of the turned ones.
Scratch<> transform_kernels(const Tensor& weight_any, bool turned) {
  const Tensor weight = raw::contiguous(weight_any);
  const int64_t outputs = weight.sizes()[0], inputs = weight.sizes()[1], size = outputs * inputs;
  const float* const g = weight.data<float>();
  Scratch<> u(kPoints * size);
  for (int64_t o = 0; o < outputs; ++o)
    for (int64_t i = 0; i < inputs; ++i) {
      const auto points = transform_kernel(g + (o * inputs + i) * 9, turned);
      float* const to = u.data() + (turned ? o * inputs + i : i * outputs + o);
      for (int64_t p = 0; p < kPoints; ++p) to[p * size] = points[static_cast<size_t>(p)];
    }
  return u;
}

/// Aᵀ m A of the tiles [first, last), with bias and activation, into the image.
void transform_outputs(const Tiles& tiles, const float* m, int64_t channels, int64_t first, int64_t last,
                       const float* bias, bool relu, float* y) {
  const int64_t step = point_step(channels);
  for (int64_t t = first; t < last; ++t) {
    const Tile tile = tile_at(tiles, t);
    const int64_t h = 2 * tile.row, w = 2 * tile.column;
    float* const corner = y + ((tile.image * tiles.out_height + h) * tiles.out_width + w) * channels;
    for (int64_t c = 0; c < channels; c += kLanes) {
      const float* p = m + (t - first) * channels + c;
      Vector r[2][4];
      for (int j = 0; j < 4; ++j, p += step) {
        const Vector m0 = load_vector(p), m1 = load_vector(p + 4 * step), m2 = load_vector(p + 8 * step),
                     m3 = load_vector(p + 12 * step);
        r[0][j] = m0 + m1 + m2;
        r[1][j] = m1 - m2 - m3;
      }
      const Vector b = bias ? load_vector(bias + c) : Vector{};
      for (int64_t i = 0; i < 2 && h + i < tiles.out_height; ++i) {
        const Vector out[2] = {r[i][0] + r[i][1] + r[i][2] + b, r[i][1] - r[i][2] - r[i][3] + b};
        for (int64_t j = 0; j < 2 && w + j < tiles.out_width; ++j) {
          const Vector v = out[j];
          store_vector(corner + (i * tiles.out_width + j) * channels + c, relu ? (v < 0 ? Vector{} : v) : v);
        }
      }
    }
  }
}

/// A dy Aᵀ of the tiles [first, last), laid out like V; adds the plain sums of dy to `sums` where wanted.
void transform_gradients(const Tiles& tiles, const float* dy, int64_t channels, int64_t first, int64_t last, float* to,
                         float* sums) {
  const int64_t step = point_step(channels);
  for (int64_t t = first; t < last; ++t) {
    const Tile tile = tile_at(tiles, t);
    const int64_t h = 2 * tile.row, w = 2 * tile.column;
    const float* const corner = dy + ((tile.image * tiles.out_height + h) * tiles.out_width + w) * channels;
    for (int64_t c = 0; c < channels; c += kLanes) {
      Vector d[2][2];
      for (int64_t i = 0; i < 2; ++i)
        for (int64_t j = 0; j < 2; ++j) {
          const bool there = h + i < tiles.out_height && w + j < tiles.out_width;
          d[i][j] = there ? load_vector(corner + (i * tiles.out_width + j) * channels + c) : Vector{};
        }
      if (sums) store_vector(sums + c, load_vector(sums + c) + ((d[0][0] + d[0][1]) + (d[1][0] + d[1][1])));
      const Vector r[4][2] = {{d[0][0], d[0][1]},
                              {d[0][0] + d[1][0], d[0][1] + d[1][1]},
                              {d[0][0] - d[1][0], d[0][1] - d[1][1]},
                              {-d[1][0], -d[1][1]}};
      float* p = to + (t - first) * channels + c;
      for (int i = 0; i < 4; ++i, p += 4 * step) {
        store_vector(p, r[i][0]);
        store_vector(p + step, r[i][0] + r[i][1]);
        store_vector(p + 2 * step, r[i][0] - r[i][1]);
        store_vector(p + 3 * step, -r[i][1]);
      }
    }
  }
}

/// Convolves x [N, H, W, in] with u [points, in, out].
void convolve(const Tiles& tiles, int64_t images, const float* x, int64_t in, const float* u, int64_t out,
              const float* bias, bool relu, float* y) {
  const int64_t total = images * tiles.per_image(), blocks = (total + kBlock - 1) / kBlock;
  parallel_for(blocks, 1, [&](int64_t begin, int64_t end) {
    const Scratch<> v(kPoints * point_step(in)), m(kPoints * point_step(out));
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b * kBlock, last = std::min(total, first + kBlock);
      transform_inputs(tiles, x, in, first, last, v.data());
      for (int64_t p = 0; p < kPoints; ++p)
        multiply<false>(v.data() + p * point_step(in), in, 1, last - first, u + p * in * out, in, out,
                        m.data() + p * point_step(out));
      transform_outputs(tiles, m.data(), out, first, last, bias, relu, y);
    }
  });
}

}  // namespace

bool winograd_applies(const Shape& x, const Shape& weight, const ConvParameters& c, DType dtype) {
  const bool plain =
      c.stride == Pair(1) && c.dilation == Pair(1) && c.groups == 1 && c.padding.h <= 2 && c.padding.w <= 2;
  return plain && dtype == DType::f32 && weight[2] == 3 && weight[3] == 3 && weight[0] % kLanes == 0 &&
         weight[1] % kLanes == 0 && x[0] * x[2] * x[3] >= 2 * kBlock;
}

void winograd_forward(const Tensor& x, const Tensor& weight, const Tensor& bias, Pair padding, Activation activation,
                      Tensor& out) {
  const Scratch<> u = transform_kernels(weight, false);
  convolve(Tiles(x.sizes(), out.sizes(), padding), x.sizes()[0], x.data<float>(), x.sizes()[1], u.data(),
           out.sizes()[1], bias.defined() ? bias.data<float>() : nullptr, activation == Activation::relu,
           out.data<float>());
  if (activation != Activation::none && activation != Activation::relu)
    cpu_kernels::bias_activation(out, Tensor(), 1, activation, out);
}

void winograd_backward_data(const Tensor& dy, const Tensor& weight, Pair padding, Tensor& dx) {
  // The gradient is the convolution of dy with the kernels turned by 180 degrees, inputs and outputs changed round.
  const Scratch<> u = transform_kernels(weight, true);
  convolve(Tiles(dy.sizes(), dx.sizes(), {2 - padding.h, 2 - padding.w}), dy.sizes()[0], dy.data<float>(),
           dy.sizes()[1], u.data(), dx.sizes()[1], nullptr, false, dx.data<float>());
}

void winograd_backward_weight(const Tensor& x, const Tensor& dy, Pair padding, Tensor& dweight, Tensor& dbias) {
  const int64_t o_count = dweight.sizes()[0], i_count = dweight.sizes()[1];
  const Tiles tiles(x.sizes(), dy.sizes(), padding);
  const int64_t total = x.sizes()[0] * tiles.per_image(), blocks = (total + kBlock - 1) / kBlock;
  constexpr int64_t kParts = 8;  // fixed, so that the sum does not depend on the threads
  const int64_t parts = std::min(kParts, blocks), size = kPoints * i_count * o_count;
  const Scratch<> sums(parts * size);
  std::vector<double> bias_sums(static_cast<size_t>(parts * o_count), 0.0);
  parallel_for(parts, 1, [&](int64_t begin, int64_t end) {
    const Scratch<> v(kPoints * point_step(i_count)), m(kPoints * point_step(o_count)), block_bias(o_count);
    for (int64_t part = begin; part < end; ++part) {
      float* const du = sums.data() + part * size;
      std::memset(du, 0, static_cast<size_t>(size) * sizeof(float));
      for (int64_t b = blocks * part / parts; b < blocks * (part + 1) / parts; ++b) {
        const int64_t first = b * kBlock, last = std::min(total, first + kBlock);
        std::memset(block_bias.data(), 0, static_cast<size_t>(o_count) * sizeof(float));
        transform_inputs(tiles, x.data<float>(), i_count, first, last, v.data());
        transform_gradients(tiles, dy.data<float>(), o_count, first, last, m.data(),
                            dbias.defined() ? block_bias.data() : nullptr);
        for (int64_t p = 0; p < kPoints; ++p)
          multiply<true>(v.data() + p * point_step(i_count), 1, i_count, i_count, m.data() + p * point_step(o_count),
                         last - first, o_count, du + p * i_count * o_count);
        if (dbias.defined())
          for (int64_t o = 0; o < o_count; ++o)
            bias_sums[static_cast<size_t>(part * o_count + o)] += static_cast<double>(block_bias.data()[o]);
      }
    }
  });
  float* const du = sums.data();
  for (int64_t part = 1; part < parts; ++part)
    for (int64_t k = 0; k < size; ++k) du[k] += du[part * size + k];
  float* const dg = dweight.data<float>();
  for (int64_t i = 0; i < i_count; ++i)
    for (int64_t o = 0; o < o_count; ++o) {  // Gᵀ du G
      auto at = [&](int64_t p) { return du[(p * i_count + i) * o_count + o]; };
      float r[3][4];
      for (int64_t j = 0; j < 4; ++j) {
        const float half_sum = 0.5f * (at(4 + j) + at(8 + j)), half_difference = 0.5f * (at(4 + j) - at(8 + j));
        r[0][j] = at(j) + half_sum;
        r[1][j] = half_difference;
        r[2][j] = half_sum + at(12 + j);
      }
      float* const g = dg + (o * i_count + i) * 9;
      for (int64_t k = 0; k < 3; ++k) {
        const float half_sum = 0.5f * (r[k][1] + r[k][2]);
        g[3 * k] = r[k][0] + half_sum;
        g[3 * k + 1] = 0.5f * (r[k][1] - r[k][2]);
        g[3 * k + 2] = half_sum + r[k][3];
      }
    }
  if (!dbias.defined()) return;
  for (int64_t o = 0; o < o_count; ++o) {
    double sum = 0;
    for (int64_t part = 0; part < parts; ++part) sum += bias_sums[static_cast<size_t>(part * o_count + o)];
    dbias.data<float>()[o] = static_cast<float>(sum);
  }
}

}  // namespace weft::cpu_kernels
