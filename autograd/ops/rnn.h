// Recurrent layers: one layer in one direction over a sequence, time first.
#pragma once

#include "tensor/tensor.h"

namespace weft {

/// Of a layer of width H over inputs of width `in`: input [G·H, in], hidden [G·H, H], biases [G·H] or both undefined.
/// The gates are G = 4 blocks of rows in the order i f g o for an LSTM, 3 in the order r z n for a GRU.
struct RecurrentWeights {
  Tensor input, hidden, input_bias = {}, hidden_bias = {};
};

struct RecurrentOptions {
  Tensor lengths = {};   ///< i64 [N], each from 0 to T: where the rows of a batch end; undefined: all at T
  bool reverse = false;  ///< from the last step to the first
};

struct LstmResult {
  Tensor output;  ///< [T, N, H]: the state h after each step, 0 beyond a row's length
  Tensor h, c;    ///< [N, H]: the state at the end, in reverse after step 0
};

/// Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers, Schmidhuber and Cummins
/// 2000): c' = σ(f) c + σ(i) tanh(g), h' = σ(o) tanh(c'), where i f g o = x · inputᵀ + h · hiddenᵀ + biases. x [T, N,
/// in]; h and c [N, H] are the state before the first step, zeros where undefined; c is in the compute type (f32 for
/// 16-bit x). Beyond its length a row's state stays as it is; in reverse a row so begins with its own last step.
LstmResult lstm(const Tensor& x, const Tensor& h, const Tensor& c, const RecurrentWeights& weights,
                const RecurrentOptions& options = {});

struct GruResult {
  Tensor output;  ///< [T, N, H], as LstmResult's
  Tensor h;       ///< [N, H]
};

/// Gated recurrent unit (Cho et al. 2014), with the reset gate after the product: n = tanh(xₙ + σ(r) hₙ),
/// h' = (1 - σ(z)) n + σ(z) h, where xₙ and hₙ are the input's and the state's share with their biases.
GruResult gru(const Tensor& x, const Tensor& h, const RecurrentWeights& weights, const RecurrentOptions& options = {});

}  // namespace weft
