// Recurrent layers over batches of sequences.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "autograd/ops/rnn.h"
#include "nn/module.h"

namespace weft::nn {

/// What LSTM and GRU share. For layer k: weight_ih_l<k> [G · hidden, in of the layer], weight_hh_l<k> [G · hidden,
/// hidden], bias_ih_l<k> and bias_hh_l<k> [G · hidden], and the same with _reverse for the second direction; all drawn
/// uniformly from ±1 / √hidden. Names and the order of gates are PyTorch's.
class Recurrent : public Module {
 public:
  struct Options {
    int64_t in = 0, hidden = 0;
    int64_t layers = 1;          ///< one on top of the other
    bool bidirectional = false;  ///< a second direction in each layer, its outputs behind the first one's
    double dropout = 0;          ///< on what goes from a layer to the next, while training
    bool batch_first = true;     ///< sequences are [N, T, ..], else [T, N, ..]
    bool bias = true;
  };

  const Options options;

 protected:
  Recurrent(const char* op, int64_t gates, Options options);
  /// All layers in all directions: direction(k, weights, x, options) runs the k-th and returns its output.
  Tensor run_layers(const Tensor& x, const Tensor& lengths,
                    const std::function<Tensor(int64_t k, const RecurrentWeights& weights, const Tensor& x,
                                               const RecurrentOptions& options)>& direction) const;
  /// The k-th of states [layers · directions, N, hidden]; undefined where they are.
  Tensor state_of(const Tensor& states, int64_t k) const;
  void reset_own_parameters() override;

 private:
  /// Parameters of one layer in one direction.
  struct Weights {
    Tensor &input, &hidden, &input_bias, &hidden_bias;
  };
  Weights add_direction(const std::string& suffix, int64_t in, int64_t gates);

  const char* const op_;
  std::vector<Weights> weights_;
};

/// States of all layers and directions, [layers · D, N, hidden]; zeros where undefined.
struct LstmState {
  Tensor h = {}, c = {};
};

/// Long short-term memory; the formulas and lengths are those of lstm(). Sequences [N, T, in] → [N, T, D · hidden] for
/// D directions.
class LSTM : public Recurrent {
 public:
  using State = LstmState;
  struct Output {
    Tensor output;
    Tensor h_n, c_n;  ///< [layers · D, N, hidden]: where each row ends; a second direction ends at step 0
  };
  explicit LSTM(Options options) : Recurrent("lstm", 4, options) {}
  /// The output alone.
  Tensor forward(const Tensor& x) override { return forward(x, Tensor()).output; }
  /// lengths (i64 [N], or undefined for rows that are all whole): a row's output is 0 beyond its length.
  Output forward(const Tensor& x, const Tensor& lengths, const State& start = {});
  using Module::operator();
  Output operator()(const Tensor& x, const Tensor& lengths, const State& start = {});
};

/// Gated recurrent units; the formulas and lengths are those of gru().
class GRU : public Recurrent {
 public:
  struct Output {
    Tensor output;
    Tensor h_n;  ///< [layers · D, N, hidden]
  };
  explicit GRU(Options options) : Recurrent("gru", 3, options) {}
  Tensor forward(const Tensor& x) override { return forward(x, Tensor()).output; }
  Output forward(const Tensor& x, const Tensor& lengths, const Tensor& start = {});
  using Module::operator();
  Output operator()(const Tensor& x, const Tensor& lengths, const Tensor& start = {});
};

}  // namespace weft::nn
