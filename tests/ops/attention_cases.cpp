// Cases of attention and rotary positions.
#include "autograd/ops/attention.h"

#include <cmath>
#include <limits>

#include "autograd/ops/rotary.h"
#include "tensor/random.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

struct Setting {
  int64_t batch, heads, groups, queries, keys, width;
  bool causal = false, masked = false;
  double scale = 0, dropout = 0;
};

/// What the probability of query t and key s of head `head`, counted over the batch, is multiplied by with seed 11.
double kept(const Setting& n, int64_t head, int64_t t, int64_t s) {
  if (n.dropout == 0) return 1;
  const auto block = static_cast<uint64_t>((head * ((n.keys + 3) / 4) + s / 4) * n.queries + t);
  const uint32_t word = philox(11, block)[static_cast<size_t>(s % 4)];
  return static_cast<double>(word) * 0x1p-32 < n.dropout ? 0 : 1 / (1 - n.dropout);
}

/// The probabilities of query t of one head, times what is kept.
std::vector<double> probabilities(const Setting& n, const Refs& in, int64_t b, int64_t h, int64_t t) {
  const int64_t group = h / (n.heads / n.groups);
  const double scale = n.scale == 0 ? 1 / std::sqrt(static_cast<double>(n.width)) : n.scale;
  std::vector<double> p(static_cast<size_t>(n.keys), 0.0);
  double total = 0;
  for (int64_t s = 0; s < n.keys; ++s) {
    if (n.causal && s > t + n.keys - n.queries) continue;
    if (n.masked && in[3](b, s) == 0) continue;
    double score = 0;
    for (int64_t d = 0; d < n.width; ++d) score += in[0](b, h, t, d) * in[1](b, group, s, d);
    total += p[static_cast<size_t>(s)] = std::exp(score * scale);
  }
  for (int64_t s = 0; s < n.keys && total > 0; ++s) p[static_cast<size_t>(s)] *= kept(n, b * n.heads + h, t, s) / total;
  return p;
}

Ref reference(const Setting& n, const Refs& in) {
  Ref y({n.batch, n.heads, n.queries, n.width});
  for (int64_t b = 0; b < n.batch; ++b)
    for (int64_t h = 0; h < n.heads; ++h)
      for (int64_t t = 0; t < n.queries; ++t) {
        const std::vector<double> p = probabilities(n, in, b, h, t);
        for (int64_t s = 0; s < n.keys; ++s)
          for (int64_t d = 0; d < n.width; ++d)
            y(b, h, t, d) += p[static_cast<size_t>(s)] * in[2](b, h / (n.heads / n.groups), s, d);
      }
  return y;
}

AttentionOptions options(const Setting& n, const Tensor& mask) {
  AttentionOptions o{.causal = n.causal, .mask = mask, .dropout = n.dropout};
  if (n.scale != 0) o.scale = n.scale;
  return o;
}

OpCase attention_case(const char* name, const Setting& n) {
  const In q{{n.batch, n.heads, n.queries, n.width}}, k{{n.batch, n.groups, n.keys, n.width}};
  std::vector<In> inputs = {q, k, k};
  if (n.masked) inputs.push_back(In::booleans({n.batch, n.keys}));
  return {.name = name,
          .inputs = inputs,
          .run =
              [=](const Tensors& x) {
                manual_seed(11);
                return attention(x[0], x[1], x[2], options(n, n.masked ? x[3] : Tensor()));
              },
          .reference = [=](const Refs& x) { return reference(n, x); },
          .dtypes = {f32, f64, bf16, f16}};
}

/// Tiles of many sizes: too much for finite differences.
OpCase long_case(const char* name, const Setting& n) {
  OpCase c = attention_case(name, n);
  c.differences = false;
  return c;
}

/// qkv [B, T, 3, H, D] in one.
OpCase packed_case(const char* name, const Setting& n) {
  std::vector<In> inputs = {{{n.batch, n.queries, 3 * n.heads * n.width}}};
  if (n.masked) inputs.push_back(In::booleans({n.batch, n.keys}));
  return {
      .name = name,
      .inputs = inputs,
      .run = [=](const Tensors& x) { return self_attention(x[0], n.heads, options(n, n.masked ? x[1] : Tensor())); },
      .reference =
          [=](const Refs& x) {
            Refs parts(3, Ref({n.batch, n.heads, n.queries, n.width}));
            for (int64_t i = 0; i < x[0].numel(); ++i) {
              const int64_t d = i % n.width, h = i / n.width % n.heads, part = i / n.width / n.heads % 3,
                            t = i / n.width / n.heads / 3 % n.queries, b = i / (x[0].numel() / n.batch);
              parts[static_cast<size_t>(part)](b, h, t, d) = x[0][i];
            }
            if (n.masked) parts.push_back(x[1]);
            const Ref y = reference(n, parts);
            Ref joined({n.batch, n.queries, n.heads * n.width});
            for (int64_t b = 0; b < n.batch; ++b)
              for (int64_t h = 0; h < n.heads; ++h)
                for (int64_t t = 0; t < n.queries; ++t)
                  for (int64_t d = 0; d < n.width; ++d) joined(b, t, h * n.width + d) = y(b, h, t, d);
            return joined;
          },
      .dtypes = {f32, f64, bf16, f16}};
}

OpCase rotary_case(const char* name, const Shape& sizes, const RotaryOptions& o) {
  return {.name = name,
          .inputs = {{sizes}},
          .run = [=](const Tensors& x) { return rotary(x[0], o); },
          .reference =
              [=](const Refs& x) {
                Ref y(sizes);
                const int64_t width = sizes[3], pairs = width / 2;
                for (int64_t i = 0; i < y.numel(); ++i) {
                  const int64_t d = i % width, pair = o.interleaved ? d / 2 : d % pairs;
                  const bool second = o.interleaved ? d % 2 != 0 : d >= pairs;
                  const int64_t other = o.interleaved ? (second ? i - 1 : i + 1) : (second ? i - pairs : i + pairs);
                  const double angle = static_cast<double>(o.offset + i / width % sizes[2]) *
                                       std::pow(o.base, -2.0 * static_cast<double>(pair) / static_cast<double>(width));
                  y[i] = x[0][i] * std::cos(angle) + (second ? 1 : -1) * x[0][other] * std::sin(angle);
                }
                return y;
              },
          .dtypes = {f32, f64, bf16, f16}};
}

}  // namespace

OpCases attention_cases() {
  OpCase wide = packed_case("attention/packed_causal", {2, 2, 2, 5, 5, 3, true});
  wide.bench = {{{8, 256, 384}}};
  OpCase rotated = rotary_case("rotary", {2, 2, 5, 6}, {});
  rotated.bench = {{{4, 4, 256, 64}}};
  return {
      attention_case("attention", {2, 2, 2, 5, 5, 4}),
      attention_case("attention/causal", {1, 2, 2, 6, 6, 3, true}),
      attention_case("attention/padding", {3, 2, 2, 4, 6, 5, false, true}),
      attention_case("attention/padding_and_causal", {3, 2, 2, 6, 6, 4, true, true}),
      attention_case("attention/more_keys_causal", {1, 2, 2, 3, 7, 4, true}),
      attention_case("attention/more_queries_causal", {1, 2, 2, 7, 3, 4, true}),
      attention_case("attention/one_query", {2, 3, 3, 1, 9, 4}),
      attention_case("attention/one_key", {2, 2, 2, 4, 1, 3}),
      attention_case("attention/one_wide", {2, 2, 2, 4, 5, 1}),
      attention_case("attention/groups", {2, 4, 2, 3, 5, 2, true, true}),
      attention_case("attention/scale", {1, 2, 2, 4, 4, 3, false, false, 0.25}),
      attention_case("attention/dropout", {2, 2, 1, 5, 7, 4, false, false, 0, 0.3}),
      attention_case("attention/dropout_causal_padding", {2, 2, 2, 6, 6, 3, true, true, 0, 0.5}),
      wide,
      packed_case("attention/packed_padding", {2, 2, 2, 4, 4, 2, false, true}),
      long_case("attention/long_causal", {1, 1, 1, 150, 150, 16, true}),
      long_case("attention/long_padding", {2, 1, 1, 70, 210, 20, false, true}),
      long_case("attention/long_odd", {1, 2, 1, 131, 99, 33, true}),
      long_case("attention/long_dropout", {1, 2, 1, 67, 130, 8, true, true, 0, 0.2}),
      long_case("attention/wide_64", {1, 1, 1, 40, 70, 64, true}),
      long_case("attention/wide_96", {1, 1, 1, 35, 50, 96}),
      long_case("attention/wide_256", {1, 1, 1, 20, 36, 256, true}),
      long_case("attention/wide_133", {1, 1, 1, 20, 18, 133}),
      rotated,
      rotary_case("rotary/interleaved", {1, 2, 4, 6}, {.interleaved = true}),
      rotary_case("rotary/offset", {2, 1, 3, 4}, {.base = 100, .offset = 7}),
  };
}

}  // namespace weft::testing
