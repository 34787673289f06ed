// What recurrent layers must hold beyond their cases: lengths, inference, threads, errors, mixed precision.
#include "autograd/ops/rnn.h"

#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "nn/rnn.h"
#include "tensor/random.h"
#include "tensor/threads.h"
#include "tests/expect_error.h"
#include "tests/on_device.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

RecurrentWeights weights(int64_t gates, int64_t in, int64_t width) {
  return {rand({gates * width, in}, {}, -0.5, 0.5), rand({gates * width, width}, {}, -0.5, 0.5),
          rand({gates * width}, {}, -0.5, 0.5), rand({gates * width}, {}, -0.5, 0.5)};
}

/// A padded batch is its rows one by one.
TEST(Rnn, PaddedBatchIsItsRowsAlone) {
  manual_seed(11);
  const std::vector<int64_t> lengths = {5, 1, 0, 3};
  for (const bool bidirectional : {false, true}) {
    nn::LSTM lstm({.in = 3, .hidden = 4, .layers = 2, .bidirectional = bidirectional});
    nn::GRU gru({.in = 3, .hidden = 4, .layers = 2, .bidirectional = bidirectional});
    const Tensor x = randn({4, 5, 3}), all = from(lengths, {4});
    const nn::LSTM::Output l = lstm(x, all);
    const nn::GRU::Output g = gru(x, all);
    for (int64_t n = 0; n < 4; ++n) {
      const int64_t length = lengths[static_cast<size_t>(n)];
      const auto expect_row = [&](const Tensor& batch, const Tensor& alone) {
        const auto p = batch.to_vector<float>(), q = alone.to_vector<float>();
        ASSERT_EQ(p.size(), q.size());
        for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], q[i], 1e-6);
      };
      for (const Tensor& output : {l.output, g.output})
        for (const float v : output.select(0, n).narrow(0, length, 5 - length).to_vector<float>()) EXPECT_EQ(v, 0.0f);
      if (length == 0) {
        for (const Tensor& end : {l.h_n, l.c_n, g.h_n})
          for (const float v : end.select(1, n).to_vector<float>()) EXPECT_EQ(v, 0.0f);
        continue;
      }
      const Tensor row = x.narrow(0, n, 1).narrow(1, 0, length);
      const nn::LSTM::Output one = lstm(row, Tensor());
      expect_row(l.output.narrow(0, n, 1).narrow(1, 0, length), one.output);
      expect_row(l.h_n.narrow(1, n, 1), one.h_n);
      expect_row(l.c_n.narrow(1, n, 1), one.c_n);
      const nn::GRU::Output other = gru(row, Tensor());
      expect_row(g.output.narrow(0, n, 1).narrow(1, 0, length), other.output);
      expect_row(g.h_n.narrow(1, n, 1), other.h_n);
    }
  }
}

/// A sequence in two parts, the second starting where the first ended.
TEST(Rnn, StateGoesOnAndInferenceGivesTheSame) {
  manual_seed(12);
  nn::LSTM lstm({.in = 2, .hidden = 3, .layers = 2});
  nn::GRU gru({.in = 2, .hidden = 3, .layers = 2, .batch_first = false});
  const Tensor x = randn({2, 7, 2}), steps = x.transpose(0, 1);
  const nn::LSTM::Output whole = lstm(x, Tensor());
  NoGrad no_grad;
  const nn::LSTM::Output first = lstm(x.narrow(1, 0, 3), Tensor());
  const nn::LSTM::Output second = lstm(x.narrow(1, 3, 4), Tensor(), {first.h_n, first.c_n});
  EXPECT_EQ(second.output.to_vector<float>(), whole.output.narrow(1, 3, 4).to_vector<float>());
  EXPECT_EQ(second.c_n.to_vector<float>(), whole.c_n.to_vector<float>());
  EXPECT_EQ(lstm(x).to_vector<float>(), whole.output.to_vector<float>());
  const nn::GRU::Output all = gru(steps, Tensor()), begin = gru(steps.narrow(0, 0, 3), Tensor());
  EXPECT_EQ(gru(steps.narrow(0, 3, 4), Tensor(), begin.h_n).h_n.to_vector<float>(), all.h_n.to_vector<float>());
}

/// All that comes from the first layer is dropped: the second sees zeros, in training only.
TEST(Rnn, DropoutIsBetweenLayers) {
  manual_seed(16);
  nn::GRU gru({.in = 2, .hidden = 3, .layers = 2, .dropout = 1});
  const Tensor a = randn({2, 4, 2}), b = randn({2, 4, 2});
  EXPECT_EQ(gru(a).to_vector<float>(), gru(b).to_vector<float>());
  EXPECT_NE(gru(a, Tensor()).h_n.select(0, 0).to_vector<float>(), gru(b, Tensor()).h_n.select(0, 0).to_vector<float>());
  gru.eval();
  EXPECT_NE(gru(a).to_vector<float>(), gru(b).to_vector<float>());
}

TEST(Rnn, GradientsOfOneOutputAlone) {
  manual_seed(13);
  const Tensor x = randn({3, 2, 2}, f64);
  RecurrentWeights w = weights(4, 2, 3);
  for (Tensor* t : {&w.input, &w.hidden, &w.input_bias, &w.hidden_bias}) *t = t->to(f64);
  for (const int wanted : {0, 1, 2})
    for (const bool reverse : {false, true}) {
      const auto f = [&](const std::vector<Tensor>& in) {
        const LstmResult r = lstm(in[0], {}, {}, w, {.reverse = reverse});
        return wanted == 0 ? r.output.narrow(0, 1, 1) : wanted == 1 ? r.h : r.c;
      };
      const GradcheckResult result = gradcheck(f, {x});
      EXPECT_TRUE(result.ok) << wanted << ": " << result.message;
    }
}

TEST(Rnn, EveryNumberOfThreadsAgrees) {
  manual_seed(14);
  const Tensor x = randn({6, 40, 8}), lengths = randint(0, 7, {40});
  nn::LSTM lstm({.in = 8, .hidden = 160, .bidirectional = true, .batch_first = false});
  const int before = num_threads();
  std::vector<float> first;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const std::vector<float> y = lstm(x, lengths).output.to_vector<float>();
    if (first.empty()) first = y;
    ASSERT_EQ(y.size(), first.size());
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], first[i], 1e-6);
  }
  set_num_threads(before);
}

TEST(Rnn, AutocastMultipliesIn16BitsAndKeepsTheCellInF32) {
  manual_seed(15);
  nn::LSTM lstm({.in = 4, .hidden = 8, .bidirectional = true});
  const Tensor x = randn({3, 6, 4});
  const nn::LSTM::Output wide = lstm(x, Tensor());
  nn::LSTM::Output narrow;
  {
    const Autocast guard(bf16);
    narrow = lstm(x, Tensor());
  }
  EXPECT_EQ(narrow.output.dtype(), bf16);
  EXPECT_EQ(narrow.c_n.dtype(), f32);
  const auto p = wide.output.to_vector<float>(), q = narrow.output.to_vector<float>();
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], q[i], 0.02);
  backward({narrow.output}, {ones_like(narrow.output)});
  for (const Named& parameter : lstm.parameters()) EXPECT_EQ(parameter.value.grad().dtype(), f32) << parameter.name;
}

TEST(Rnn, WhatDoesNotFitIsNamed) {
  const RecurrentWeights w = weights(4, 2, 3);
  const Tensor x = randn({5, 2, 2});
  EXPECT_ERROR(lstm(x.select(0, 0), {}, {}, w), "[lstm] wants an input [T, N, in] of at least one step, got [2, 2]");
  EXPECT_ERROR(lstm(randn({5, 2, 3}), {}, {}, w), "weight wants 2 input features, input has 3");
  EXPECT_ERROR(gru(x, {}, w), "[gru] the input weight wants f32 [9, 2] on cpu, got f32 [12, 2] on cpu");
  EXPECT_ERROR(lstm(x, zeros({3, 3}), {}, w), "the first h wants f32 [2, 3] on cpu, got f32 [3, 3] on cpu");
  EXPECT_ERROR(lstm(x, {}, {}, w, {.lengths = from<int64_t>({5, 6}, {2})}),
               "[lstm] index 6 at position [1] is out of range for lengths");
  EXPECT_ERROR(lstm(x, {}, {}, w, {.lengths = from<int64_t>({-1, 5}, {2})}), "index -1 at position [0]");
  EXPECT_ERROR(lstm(x, {}, {}, w, {.lengths = from<int64_t>({5}, {1})}), "a batch's lengths wants i64 [2]");
  EXPECT_ERROR(nn::LSTM({.in = 0, .hidden = 2}), "[lstm] wants .in, .hidden and .layers above 0");
  EXPECT_ERROR(nn::GRU({.in = 1, .hidden = 2, .dropout = 2}), "[gru] the dropout 2 does not lie in [0, 1]");
  nn::LSTM layer({.in = 2, .hidden = 3});
  EXPECT_ERROR(layer(zeros({2, 5, 2}), Tensor(), {zeros({2, 2, 3}), {}}), "[lstm] LSTM: a state wants [1, N, 3]");
}

class RnnOnDevice : public OnDevice<::testing::Test> {};

/// Whole layers give the CPU's values and gradients.
TEST_F(RnnOnDevice, LayersAgreeWithTheCpu) {
  manual_seed(17);
  nn::LSTM lstm({.in = 3, .hidden = 5, .layers = 2, .bidirectional = true});
  const Tensor x = randn({4, 6, 3}), lengths = from<int64_t>({6, 2, 0, 5}, {4});
  const auto run = [&](Device d) {
    lstm.zero_grad();
    lstm.to(d);
    const nn::LSTM::Output y = lstm(x.to(d), lengths.to(d));
    backward({y.output, y.c_n}, {ones_like(y.output), ones_like(y.c_n)});
    std::vector<Tensor> all = {y.output, y.h_n, y.c_n};
    for (const Named& p : lstm.parameters()) all.push_back(p.value.grad().clone());
    return all;
  };
  const std::vector<Tensor> wanted = run(cpu), got = run(device);
  for (size_t k = 0; k < wanted.size(); ++k) {
    const auto p = wanted[k].to_vector<float>(), q = got[k].to_vector<float>();
    for (size_t i = 0; i < p.size(); ++i) ASSERT_NEAR(p[i], q[i], 1e-5) << k << ", " << i;
  }
}

TEST_F(RnnOnDevice, LengthsOutOfRangeAreAFault) {
  const Tensor x = zeros({2, 3, 2}, device);
  nn::LSTM layer({.in = 2, .hidden = 3});
  layer.to(device);
  EXPECT_ERROR(layer(x, from<int64_t>({3, 4}, {2}).to(device)).output.to_vector<float>(),
               "[lstm] index 4 at position 1");
}

}  // namespace
}  // namespace weft::testing
