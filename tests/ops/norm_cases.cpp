// Cases of the normalising ops.
#include "autograd/ops/norm.h"

#include <cmath>

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;
using Map = std::function<int64_t(int64_t)>;

/// Elements of one set (set(i) of `sets`) to mean 0 and variance 1, then times weight and plus bias at place(i).
Ref normalised(const Refs& in, int64_t sets, const Map& set, const Map& place, double eps, bool centred = true) {
  const Ref& x = in[0];
  const auto count = static_cast<size_t>(sets);
  std::vector<double> n(count), mean(count), squares(count);
  auto at = [&](int64_t i) { return static_cast<size_t>(set(i)); };
  for (int64_t i = 0; i < x.numel(); ++i) {
    n[at(i)] += 1;
    mean[at(i)] += centred ? x[i] : 0;
  }
  for (size_t s = 0; s < count; ++s) mean[s] /= n[s];
  for (int64_t i = 0; i < x.numel(); ++i) squares[at(i)] += (x[i] - mean[at(i)]) * (x[i] - mean[at(i)]);
  Ref y(x.sizes);
  for (int64_t i = 0; i < x.numel(); ++i) {
    y[i] = (x[i] - mean[at(i)]) / std::sqrt(squares[at(i)] / n[at(i)] + eps);
    if (in.size() > 1) y[i] *= in[1][place(i)];
    if (in.size() > 2) y[i] += in[2][place(i)];
  }
  return y;
}

Tensor input(const Tensors& x, size_t i) { return i < x.size() ? x[i] : Tensor(); }

/// x [N, C, S…] with weight and bias [C].
OpCase batch(std::string name, const Shape& sizes, std::vector<In> bench = {}) {
  const int64_t c = sizes[1], s = sizes.numel() / sizes[0] / c;
  const Map channel = [=](int64_t i) { return i / s % c; };
  return {.name = std::move(name),
          .inputs = {{sizes}, In::positive({c}), {{c}}},
          .run = [](const Tensors& x) { return batch_norm(x[0], x[1], x[2], {}, {}); },
          .reference = [=](const Refs& x) { return normalised(x, c, channel, channel, 1e-5); },
          .dtypes = {f32, f64, bf16, f16},
          .bench = std::move(bench)};
}

/// The same where differences would take long.
OpCase large(OpCase c) {
  c.differences = false;
  return c;
}

/// The same with the input given as [N, H, W, C] and its channels moved to the front as a view.
OpCase batch_channels_last() {
  OpCase c = batch("batch_norm/channels_last", {4, 3, 2, 5});
  const auto reference = c.reference;
  c.inputs[0].sizes = {4, 2, 5, 3};
  c.run = [](const Tensors& x) { return batch_norm(x[0].permute({0, 3, 1, 2}), x[1], x[2], {}, {}); };
  c.reference = [reference](Refs x) {
    Ref moved({4, 3, 2, 5});
    for (int64_t n = 0; n < 4; ++n)
      for (int64_t k = 0; k < 3; ++k)
        for (int64_t h = 0; h < 2; ++h)
          for (int64_t w = 0; w < 5; ++w) moved(n, k, h, w) = x[0](n, h, w, k);
    x[0] = moved;
    return reference(x);
  };
  c.bench = {In{{64, 26, 26, 64}}, In::positive({64}), In{{64}}};
  return c;
}

OpCase batch_evaluation(const char* name, bool channels_last) {
  const double mean[] = {0.5, -1, 0.25}, variance[] = {2, 0.5, 1};
  return {.name = name,
          .inputs = {{{4, 3, 2, 5}}, In::positive({3}), {{3}}},
          .run =
              [=](const Tensors& x) {
                const DType dtype = x[0].dtype() == f64 ? f64 : f32;
                const Tensor m = from(std::span<const double>(mean), {3}).to(dtype),
                             v = from(std::span<const double>(variance), {3}).to(dtype);
                const Tensor in = channels_last ? x[0].permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}) : x[0];
                return batch_norm(in, x[1], x[2], m.to(in.device()), v.to(in.device()), {.training = false});
              },
          .reference =
              [=](const Refs& x) {
                Ref y(x[0].sizes);
                for (int64_t i = 0; i < y.numel(); ++i) {
                  const int64_t c = i / 10 % 3;
                  y[i] = (x[0][i] - mean[c]) / std::sqrt(variance[c] + 1e-5) * x[1][c] + x[2][c];
                }
                return y;
              },
          .dtypes = {f32, f64, bf16, f16}};
}

/// x [rows, n] over n, with as many of weight and bias as `operands` says.
OpCase rows(std::string name, int64_t count, int64_t n, size_t operands, bool centred, std::vector<In> bench = {}) {
  std::vector<In> inputs{{{count, n}}};
  if (operands > 0) inputs.push_back(In::positive({n}));
  if (operands > 1) inputs.push_back({{n}});
  const double eps = centred ? 1e-5 : 1e-6;
  return {.name = std::move(name),
          .inputs = inputs,
          .run =
              [=](const Tensors& x) {
                return centred ? layer_norm(x[0], Shape{x[0].size(1)}, input(x, 1), input(x, 2)) : rms_norm(x[0], x[1]);
              },
          .reference =
              [=](const Refs& x) {
                return normalised(
                    x, count, [n](int64_t i) { return i / n; }, [n](int64_t i) { return i % n; }, eps, centred);
              },
          .dtypes = {f32, f64, bf16, f16},
          .bench = std::move(bench)};
}

OpCase groups(std::string name, const Shape& sizes, int64_t count, std::vector<In> bench = {}) {
  const int64_t c = sizes[1], s = sizes.numel() / sizes[0] / c;
  return {.name = std::move(name),
          .inputs = {{sizes}, In::positive({c}), {{c}}},
          .run = [=](const Tensors& x) { return group_norm(x[0], count, x[1], x[2]); },
          .reference =
              [=](const Refs& x) {
                return normalised(
                    x, sizes[0] * count, [=](int64_t i) { return i / (c / count * s); },
                    [=](int64_t i) { return i / s % c; }, 1e-5);
              },
          .dtypes = {f32, f64, bf16, f16},
          .bench = std::move(bench)};
}

}  // namespace

OpCases norm_cases() {
  OpCase plain = batch("batch_norm/no_weights", {6, 4, 3});
  plain.inputs.resize(1);
  plain.run = [](const Tensors& x) { return batch_norm(x[0], {}, {}, {}, {}); };
  return {
      batch("batch_norm", {4, 3, 2, 5}, {In{{64, 64, 26, 26}}, In::positive({64}), In{{64}}}),
      batch("batch_norm/rows", {12, 5}, {In{{4096, 256}}, In::positive({256}), In{{256}}}),
      batch("batch_norm/sequence", {3, 4, 7}),
      batch("batch_norm/wide_planes", {3, 2, 4, 6}),
      batch("batch_norm/wide_rows", {12, 8}),
      large(batch("batch_norm/parts_of_planes", {2, 2, 3200})),
      large(batch("batch_norm/parts_of_rows", {1560, 8})),
      large(batch("batch_norm/many_channels", {10, 264})),
      plain,
      batch_channels_last(),
      batch_evaluation("batch_norm/evaluation", false),
      batch_evaluation("batch_norm/evaluation_channels_last", true),
      rows("layer_norm", 5, 7, 2, true, {In{{2048, 256}}, In::positive({256}), In{{256}}}),
      rows("layer_norm/long_rows", 3, 1100, 2, true),
      rows("layer_norm/short_rows", 11, 40, 2, true),
      large(rows("layer_norm/wide_rows", 9, 328, 2, true)),
      large(rows("layer_norm/odd_rows", 3, 301, 2, true)),
      large(rows("layer_norm/many_rows", 530, 24, 2, true)),
      rows("layer_norm/no_bias", 5, 7, 1, true),
      rows("layer_norm/no_weights", 5, 7, 0, true),
      {.name = "layer_norm/two_dimensions",
       .inputs = {{{2, 3, 4, 5}}, In::positive({4, 5}), {{4, 5}}},
       .run = [](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             return normalised(
                 x, 6, [](int64_t i) { return i / 20; }, [](int64_t i) { return i % 20; }, 1e-5);
           }},
      rows("rms_norm", 5, 7, 1, false, {In{{2048, 256}}, In::positive({256})}),
      large(rows("rms_norm/wide_rows", 9, 328, 1, false)),
      large(rows("rms_norm/long_rows", 2, 3200, 1, false)),
      groups("group_norm", {3, 6, 2, 4}, 2, {In{{16, 64, 26, 26}}, In::positive({64}), In{{64}}}),
      groups("group_norm/each_channel", {2, 3, 40}, 3),
      groups("group_norm/no_space", {4, 6}, 2),
      groups("group_norm/wide_planes", {3, 4, 24}, 2),
      large(groups("group_norm/long_rows", {2, 4, 9, 33}, 2)),
      large(groups("group_norm/long_wide_rows", {1, 2, 3200}, 1)),
      large(groups("group_norm/warps_of_four_packs", {1, 2, 408}, 2)),
      large(groups("group_norm/many_channels", {2, 40, 3}, 1)),
  };
}

}  // namespace weft::testing
