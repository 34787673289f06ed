// Cases of recurrent layers.
#include "autograd/ops/rnn.h"

#include "autograd/ops/index.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

struct Layer {
  int64_t steps, rows, inputs, width;
  bool reverse = false, bias = true, lengths = false;
  double range = 1;  // of the inputs, around 0
};

// Inputs: x, both weights, h, (c,) both biases where there are some, lengths where there are some.

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The gates' part from inputs and weights in row n: all of [gates · width].
std::vector<double> parts(const Ref& x, int64_t row, const Ref& weight, const Ref* bias) {
  std::vector<double> sum(static_cast<size_t>(weight.sizes[0]));
  for (int64_t g = 0; g < weight.sizes[0]; ++g) {
    double v = bias ? (*bias)[g] : 0;
    for (int64_t k = 0; k < weight.sizes[1]; ++k) v += weight(g, k) * x[row * weight.sizes[1] + k];
    sum[static_cast<size_t>(g)] = v;
  }
  return sum;
}

Ref reference(const Refs& in, const Layer& l, bool is_lstm) {
  const int64_t H = l.width;
  Ref h = in[3], c = is_lstm ? in[4] : Ref(in[3].sizes), y({l.steps, l.rows, H});
  const size_t biases = is_lstm ? 5 : 4;
  const Ref *bi = l.bias ? &in[biases] : nullptr, *bh = l.bias ? &in[biases + 1] : nullptr;
  for (int64_t i = 0; i < l.steps; ++i) {
    const int64_t t = l.reverse ? l.steps - 1 - i : i;
    for (int64_t n = 0; n < l.rows; ++n) {
      if (l.lengths && static_cast<double>(t) >= in.back()[n]) continue;
      const std::vector<double> gx = parts(in[0], t * l.rows + n, in[1], bi), gh = parts(h, n, in[2], bh);
      for (int64_t j = 0; j < H; ++j) {
        const auto x = [&](int64_t g) { return gx[static_cast<size_t>(g * H + j)]; };
        const auto s = [&](int64_t g) { return gh[static_cast<size_t>(g * H + j)]; };
        if (is_lstm) {
          c(n, j) = sigmoid(x(1) + s(1)) * c(n, j) + sigmoid(x(0) + s(0)) * std::tanh(x(2) + s(2));
          y(t, n, j) = sigmoid(x(3) + s(3)) * std::tanh(c(n, j));
        } else {
          const double z = sigmoid(x(1) + s(1));
          y(t, n, j) = (1 - z) * std::tanh(x(2) + sigmoid(x(0) + s(0)) * s(2)) + z * h(n, j);
        }
      }
      for (int64_t j = 0; j < H; ++j) h(n, j) = y(t, n, j);
    }
  }
  Ref all({(l.steps + (is_lstm ? 2 : 1)) * l.rows * H});
  int64_t at = 0;
  for (const Ref* part : {&y, &h, &c})
    for (int64_t i = 0; i < part->numel() && at < all.numel(); ++i) all[at++] = (*part)[i];
  return all;
}

OpCase recurrent_case(std::string name, const Layer& l, bool is_lstm) {
  const int64_t gates = is_lstm ? 4 : 3;
  OpCase c{.name = name,
           .inputs = {{{l.steps, l.rows, l.inputs}}, {{gates * l.width, l.inputs}}, {{gates * l.width, l.width}}},
           .run =
               [l, is_lstm](const Tensors& in) {
                 const size_t biases = is_lstm ? 5 : 4;
                 RecurrentWeights w{in[1], in[2]};
                 if (l.bias) w.input_bias = in[biases], w.hidden_bias = in[biases + 1];
                 const RecurrentOptions o{.lengths = l.lengths ? in.back() : Tensor(), .reverse = l.reverse};
                 std::vector<Tensor> all;
                 if (is_lstm) {
                   const DType state = size_of(in[0].dtype()) == 2 ? f32 : in[0].dtype();
                   const LstmResult r = lstm(in[0], in[3], in[4].to(state), w, o);
                   all = {r.output, r.h, r.c.to(in[0].dtype())};
                 } else {
                   const GruResult r = gru(in[0], in[3], w, o);
                   all = {r.output, r.h};
                 }
                 for (Tensor& x : all) x = x.flatten();
                 return cat(all);
               },
           .reference = [l, is_lstm](const Refs& in) { return reference(in, l, is_lstm); },
           .dtypes = {f32, f64, bf16, f16},
           .tolerance = 1e-5};
  for (int state = 0; state < (is_lstm ? 2 : 1); ++state) c.inputs.push_back({{l.rows, l.width}});
  if (l.bias)
    for (int k = 0; k < 2; ++k) c.inputs.push_back({{gates * l.width}});
  for (In& in : c.inputs) in.low = -l.range, in.high = l.range;
  if (l.lengths) c.inputs.push_back(In::indices({l.rows}, l.steps + 1));
  return c;
}

}  // namespace

OpCases rnn_cases() {
  OpCases cases;
  for (const bool is_lstm : {true, false}) {
    const auto add = [&](const char* name, const Layer& layer) -> OpCase& {
      cases.push_back(recurrent_case((is_lstm ? "lstm/" : "gru/") + std::string(name), layer, is_lstm));
      return cases.back();
    };
    add("plain", {.steps = 4, .rows = 3, .inputs = 2, .width = 3});
    add("reverse", {.steps = 3, .rows = 2, .inputs = 3, .width = 2, .reverse = true});
    add("lengths", {.steps = 4, .rows = 6, .inputs = 2, .width = 2, .lengths = true});
    add("lengths_reverse", {.steps = 4, .rows = 6, .inputs = 2, .width = 2, .reverse = true, .lengths = true});
    add("no_bias", {.steps = 3, .rows = 2, .inputs = 2, .width = 3, .bias = false});
    add("one_step", {.steps = 1, .rows = 2, .inputs = 3, .width = 2});
    add("one_unit", {.steps = 3, .rows = 2, .inputs = 1, .width = 1});
    // Enough of them for threads, and for packs on a device; a width that is none of vectors.
    Layer wide{.steps = 2, .rows = 130, .inputs = 3, .width = 132, .lengths = true, .range = 0.2};
    add("wide", wide).differences = false;
    wide.rows = 33, wide.width = 37, wide.reverse = true;
    add("odd", wide).differences = false;
  }
  return cases;
}

}  // namespace weft::testing
