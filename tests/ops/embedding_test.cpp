// Embedding: bad ids, the padding row, repeatable gradients.
#include "autograd/ops/embedding.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "tensor/stream.h"
#include "tensor/threads.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft {
namespace {

using Floats = std::vector<float>;

// pytorch/pytorch#6411, #46585, fairseq#4633: an id outside of the table is an error that says which, and where.
TEST(Embedding, BadIdNamesItselfAndTheVocabulary) {
  const Tensor weight = randn({5, 3});
  EXPECT_ERROR(embedding(weight, from<int64_t>({0, 4, 5, 1}, {2, 2})),
               "[embedding] index 5 at position [1, 0] is out of range for a vocabulary of size 5");
  EXPECT_ERROR(embedding(weight, from<int64_t>({-1}, {1})),
               "index -1 at position [0] is out of range for a vocabulary of size 5");
  EXPECT_ERROR(embedding(weight, from<int32_t>({7}, {1})), "index 7 at position [0]");
  EXPECT_ERROR(embedding(weight, zeros({2})), "the ids must be i64 or i32, got f32");
  EXPECT_ERROR(embedding(weight, zeros({2}, i64), 5), "padding_idx 5 is not a row of weight [5, 3]");
  EXPECT_ERROR(embedding(zeros({5}), zeros({2}, i64)), "weight wants [vocabulary, width], got [5]");
}

TEST(Embedding, ShapesAndNarrowIds) {
  const Tensor weight = arange(6).to(f32).reshape({3, 2});
  EXPECT_EQ(embedding(weight, from<int32_t>({2, 0}, {1, 2})).to_vector<float>(), (Floats{4, 5, 0, 1}));
  EXPECT_EQ(embedding(weight, zeros({}, i64)).sizes(), (Shape{2}));
  EXPECT_EQ(embedding(weight, zeros({4, 0}, i64)).sizes(), (Shape{4, 0, 2}));
  const Tensor turned = arange(6).to(f32).reshape({2, 3}).t();
  EXPECT_EQ(embedding(turned, from<int64_t>({1}, {1})).to_vector<float>(), (Floats{1, 4}));
}

TEST(Embedding, PaddingRowIsReadButHasNoGradient) {
  Tensor weight = ones({4, 2});
  weight.requires_grad_();
  const Tensor y = embedding(weight, from<int64_t>({1, 0, 3, 1, 0}, {5}), 0);
  EXPECT_EQ(y.to_vector<float>(), Floats(10, 1));
  sum(y).backward();
  EXPECT_EQ(weight.grad().to_vector<float>(), (Floats{0, 0, 2, 2, 0, 0, 1, 1}));
}

TEST(EmbeddingDevice, BadIdNamesItself) {
  const Device device = testing::test_device();
  const int64_t damaged = memory::Checking::damaged();
  for (const int64_t n : {4, 100}) {
    const memory::Checking guarded;
    Tensor weight = ones({5, 4}, device);
    weight.requires_grad_();
    Tensor ids = zeros({n}, i64);
    ids.narrow(0, n - 1, 1).fill_(5);
    ids = ids.to(device);
    const auto step = [&] { embedding(weight, ids).backward({.gradient = ones({n, 4}, device)}); };
    EXPECT_ERROR((step(), synchronize(device)), "[embedding] index 5 at position");
    if (device == cpu) continue;
    EXPECT_EQ(weight.grad().select(1, 2).to_vector<float>(), (Floats{static_cast<float>(n - 1), 0, 0, 0, 0}));
  }
  EXPECT_EQ(memory::Checking::damaged(), damaged) << "wrote outside of its memory";
}

TEST(EmbeddingDevice, PaddingRowIsReadButHasNoGradient) {
  const Device device = testing::test_device();
  for (const int64_t n : {5, 200}) {
    Tensor weight = ones({4, 2}, device);
    weight.requires_grad_();
    std::vector<int64_t> ids;
    Floats counts(8, 0);
    for (int64_t i = 0; i < n; ++i) {
      ids.push_back(i * i % 3);
      if (ids.back() != 0) counts[static_cast<size_t>(2 * ids.back())] += 1;
    }
    for (size_t i = 0; i < 8; i += 2) counts[i + 1] = counts[i];
    const Tensor y = embedding(weight, from(ids, {n}, device).to(i32), 0);
    EXPECT_EQ(y.to_vector<float>(), Floats(static_cast<size_t>(2 * n), 1));
    y.backward({.gradient = ones({n, 2}, device)});
    EXPECT_EQ(weight.grad().to_vector<float>(), counts);
  }
}

TEST(Embedding, GradientHasTheSameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  // Many rows; and one row that takes most of the positions, which are shared out by columns.
  for (int64_t vocabulary : {500, 2}) {
    Tensor weight = randn({vocabulary, 96});
    weight.requires_grad_();
    const Tensor ids = randint(0, vocabulary, {64, 50}), dy = randn({64, 50, 96});
    std::vector<Floats> grads;
    for (int threads : {1, 2, 3}) {
      set_num_threads(threads);
      weight.set_grad({});
      embedding(weight, ids).backward({.gradient = dy});
      grads.push_back(weight.grad().to_vector<float>());
    }
    set_num_threads(before);
    EXPECT_EQ(grads[0], grads[1]);
    EXPECT_EQ(grads[0], grads[2]);
  }
}

}  // namespace
}  // namespace weft
