// Golden rows of recurrent layers.
#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "nn/rnn.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

/// The layer's parameters, in its order, get the values of the inputs from `first` on, and gather their gradients in
/// them.
void take_parameters(nn::Module& layer, Inputs in, size_t first) {
  layer.to(in[0].dtype());
  NoGrad no_grad;
  for (Named& p : layer.parameters()) {
    Tensor input = in.at(first++);
    p.value.copy_(input);
    const Tensor gradient = zeros_like(input);
    p.value.set_grad(gradient);
    input.set_grad(gradient);
  }
}

using Options = nn::Recurrent::Options;

GoldenRow lstm_row(const std::string& name, const Options& options, bool packed = false) {
  return {"lstm/" + name, [=](Inputs in) -> Results {
            nn::LSTM layer(options);
            take_parameters(layer, in, 3);
            const nn::LSTM::Output y = layer(in[0], packed ? in.back() : Tensor(), {in[1], in[2]});
            return {y.output, y.h_n, y.c_n};
          }};
}

GoldenRow gru_row(const std::string& name, const Options& options, bool packed = false) {
  return {"gru/" + name, [=](Inputs in) -> Results {
            nn::GRU layer(options);
            take_parameters(layer, in, 2);
            const nn::GRU::Output y = layer(in[0], packed ? in.back() : Tensor(), in[1]);
            return {y.output, y.h_n};
          }};
}

TEST(Golden, rnn) {
  const Options plain{.in = 2, .hidden = 3}, time_first{.in = 2, .hidden = 3, .batch_first = false, .bias = false};
  const Options deep{.in = 2, .hidden = 3, .layers = 2, .bidirectional = true};
  std::vector<GoldenRow> rows;
  for (const auto row : {lstm_row, gru_row})
    for (GoldenRow r : {row("plain", plain, false), row("time_first_no_bias", time_first, false),
                        row("two_layers_bidirectional", deep, false), row("packed", plain, true),
                        row("packed_two_layers_bidirectional", deep, true)})
      rows.push_back(std::move(r));
  check_golden("rnn", rows);
}

/// Names are PyTorch's, so its files load.
TEST(Golden, RecurrentParametersHavePyTorchsNames) {
  nn::LSTM layer({.in = 2, .hidden = 3, .layers = 2, .bidirectional = true});
  std::vector<std::string> names;
  for (const Named& p : layer.parameters()) names.push_back(p.name);
  std::vector<std::string> wanted;
  for (const char* suffix : {"l0", "l0_reverse", "l1", "l1_reverse"})
    for (const char* part : {"weight_ih_", "weight_hh_", "bias_ih_", "bias_hh_"})
      wanted.push_back(std::string(part) + suffix);
  EXPECT_EQ(names, wanted);
  EXPECT_EQ(layer.parameter_count(), 4 * 3 * (2 * (2 + 3 + 2) + 2 * (6 + 3 + 2)));
}

}  // namespace
}  // namespace weft::testing
