// Recurrent layers: directions and layers around the ops of one.
#include "nn/rnn.h"

#include <cmath>

#include "autograd/ops/dropout.h"
#include "autograd/ops/index.h"
#include "nn/init.h"

namespace weft::nn {
namespace {

/// Options checked before a weight is allocated from them.
const Recurrent::Options& checked(const char* op, const Recurrent::Options& o) {
  WEFT_CHECK(o.in > 0 && o.hidden > 0 && o.layers > 0, op, "wants .in, .hidden and .layers above 0, got {}, {} and {}",
             o.in, o.hidden, o.layers);
  WEFT_CHECK(o.dropout >= 0 && o.dropout <= 1, op, "the dropout {} does not lie in [0, 1]", o.dropout);
  return o;
}

}  // namespace

Recurrent::Recurrent(const char* op, int64_t gates, Options o) : options(checked(op, o)), op_(op) {
  const int64_t directions = o.bidirectional ? 2 : 1;
  for (int64_t k = 0; k < o.layers; ++k)
    for (int64_t d = 0; d < directions; ++d)
      weights_.push_back(add_direction(fmt::format("l{}{}", k, d == 0 ? "" : "_reverse"),
                                       k == 0 ? o.in : directions * o.hidden, gates * o.hidden));
  Recurrent::reset_own_parameters();
}

Recurrent::Weights Recurrent::add_direction(const std::string& suffix, int64_t in, int64_t gates) {
  const auto bias = [&] { return options.bias ? empty({gates}) : Tensor(); };
  Tensor& input = parameter("weight_ih_" + suffix, empty({gates, in}));
  Tensor& hidden = parameter("weight_hh_" + suffix, empty({gates, options.hidden}));
  Tensor& input_bias = parameter("bias_ih_" + suffix, bias());
  return {input, hidden, input_bias, parameter("bias_hh_" + suffix, bias())};
}

void Recurrent::reset_own_parameters() {
  const double bound = 1 / std::sqrt(static_cast<double>(options.hidden));
  for (const Weights& w : weights_)
    for (const Tensor* x : {&w.input, &w.hidden, &w.input_bias, &w.hidden_bias})
      if (x->defined()) init::uniform(*x, -bound, bound);
}

Tensor Recurrent::state_of(const Tensor& states, int64_t k) const {
  if (!states.defined()) return {};
  const auto all = static_cast<int64_t>(weights_.size());
  WEFT_CHECK(states.dim() == 3 && states.size(0) == all && states.size(2) == options.hidden, op_,
             "a state wants [{}, N, {}], got {}", all, options.hidden, str(states.sizes()));
  return states.select(0, k);
}

Tensor Recurrent::run_layers(const Tensor& x, const Tensor& lengths,
                             const std::function<Tensor(int64_t k, const RecurrentWeights& weights, const Tensor& x,
                                                        const RecurrentOptions& options)>& direction) const {
  WEFT_CHECK(x.dim() == 3, op_, "wants an input {}, got {}", options.batch_first ? "[N, T, in]" : "[T, N, in]",
             str(x.sizes()));
  Tensor y = options.batch_first ? x.transpose(0, 1).contiguous() : x;
  const int64_t directions = options.bidirectional ? 2 : 1;
  for (int64_t k = 0; k < options.layers; ++k) {
    if (k > 0) y = dropout(std::move(y), options.dropout, training());
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < directions; ++d) {
      const Weights& w = weights_[static_cast<size_t>(k * directions + d)];
      outputs.push_back(direction(k * directions + d, {w.input, w.hidden, w.input_bias, w.hidden_bias}, y,
                                  {.lengths = lengths, .reverse = d == 1}));
    }
    y = directions == 1 ? outputs[0] : cat(outputs, 2);
  }
  return options.batch_first ? y.transpose(0, 1) : y;
}

LSTM::Output LSTM::forward(const Tensor& x, const Tensor& lengths, const State& start) {
  std::vector<Tensor> h, c;
  const Tensor y =
      run_layers(x, lengths, [&](int64_t k, const RecurrentWeights& w, const Tensor& in, const RecurrentOptions& o) {
        LstmResult r = lstm(in, state_of(start.h, k), state_of(start.c, k), w, o);
        h.push_back(r.h);
        c.push_back(r.c);
        return r.output;
      });
  return {y, stack(h), stack(c)};
}

LSTM::Output LSTM::operator()(const Tensor& x, const Tensor& lengths, const State& start) {
  const Scope scope(scope_id());
  return forward(x, lengths, start);
}

GRU::Output GRU::forward(const Tensor& x, const Tensor& lengths, const Tensor& start) {
  std::vector<Tensor> h;
  const Tensor y =
      run_layers(x, lengths, [&](int64_t k, const RecurrentWeights& w, const Tensor& in, const RecurrentOptions& o) {
        GruResult r = gru(in, state_of(start, k), w, o);
        h.push_back(r.h);
        return r.output;
      });
  return {y, stack(h)};
}

GRU::Output GRU::operator()(const Tensor& x, const Tensor& lengths, const Tensor& start) {
  const Scope scope(scope_id());
  return forward(x, lengths, start);
}

}  // namespace weft::nn
