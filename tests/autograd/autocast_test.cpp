// Mixed precision: which dtype each op has under an Autocast, where gradients arrive, and that nothing of it remains.
#include "autograd/autocast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/ops/conv.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/norm.h"
#include "autograd/ops/pool.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/softmax.h"
#include "nn/linear.h"
#include "nn/sequential.h"
#include "optim/sgd.h"
#include "tensor/random.h"
#include "tensor/view.h"
#include "tests/distance.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

Tensor trained(const Tensor& x) {
  Tensor leaf = raw::clone(x);
  leaf.requires_grad_();
  return leaf;
}

class Mixed : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Halves, Mixed, testing::Values(bf16, f16),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(Mixed, ProductsAreInSixteenBitsAndTheirGradientsInSingle) {
  const DType half = GetParam();
  const double error = half == bf16 ? 0x1p-7 : 0x1p-10;
  struct Case {
    std::vector<Tensor> inputs;
    std::function<Tensor(const std::vector<Tensor>&)> run;
  };
  manual_seed(1);
  const Case cases[] = {
      {{randn({5, 7}), randn({7, 4})}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {{randn({3, 5, 7}), randn({7, 4})}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {{randn({3, 5, 7}), randn({3, 7, 4})}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {{randn({7}), randn({7})}, [](const auto& in) { return matmul(in[0], in[1]); }},
      {{randn({5, 7}), randn({4, 7}), randn({4})}, [](const auto& in) { return linear(in[0], in[1], in[2]); }},
      {{randn({5, 7}), randn({4, 7})}, [](const auto& in) { return linear(in[0], in[1], {}, Activation::relu); }},
      {{randn({2, 3, 9, 8}), randn({4, 3, 3, 3}), randn({4})},
       [](const auto& in) { return conv2d(in[0], in[1], in[2], {.stride = 2, .padding = 1}); }},
      {{randn({2, 16, 9, 8}), randn({16, 16, 3, 3}), randn({16})},
       [](const auto& in) { return conv2d(in[0], in[1], in[2], {.activation = Activation::relu}); }},
      {{randn({2, 4, 9, 8}), randn({4, 2, 3, 3})},
       [](const auto& in) { return conv2d(in[0], in[1], {}, {.groups = 2}); }},
      {{randn({2, 3, 9}), randn({4, 3, 3}), randn({4})},
       [](const auto& in) { return conv1d(in[0], in[1], in[2], {.padding = 1}); }},
  };
  for (const Case& c : cases) {
    // The reference starts from what the cast makes of the inputs.
    std::vector<Tensor> inputs, wide;
    for (const Tensor& x : c.inputs) {
      inputs.push_back(trained(x));
      wide.push_back(trained(x.to(half).to(f64)));
    }
    const Tensor reference = c.run(wide), dy = randn(reference.sizes()).to(half);
    Tensor y;
    {
      const Autocast guard(half);
      y = c.run(inputs);
    }
    EXPECT_EQ(y.dtype(), half);
    EXPECT_LT(distance(y, reference), error);
    backward({y}, {dy});
    backward({reference}, {dy.to(f64)});
    for (size_t i = 0; i < inputs.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_TRUE(inputs[i].grad().defined());
      EXPECT_EQ(inputs[i].grad().dtype(), f32);
      EXPECT_LT(distance(inputs[i].grad(), wide[i].grad()), error);
    }
  }
}

TEST_P(Mixed, WhatNeedsRangeOrPrecisionIsInSingle) {
  const DType half = GetParam();
  const Tensor labels = from<int64_t>({0, 2, 1}, {3});
  using Op = std::function<Tensor(const Tensor&)>;
  const Op single[] = {
      [](const Tensor& x) { return softmax(x); },
      [](const Tensor& x) { return log_softmax(x, 0); },
      [](const Tensor& x) { return logsumexp(x, {1}); },
      [&](const Tensor& x) { return cross_entropy(x, labels); },
      [&](const Tensor& x) { return nll_loss(x, labels); },
      [](const Tensor& x) {
        return bce_with_logits(x, ones({3, 4}));
      },
      [](const Tensor& x) { return bce_with_logits(x, ones_like(x)); },
      [](const Tensor& x) {
        return mse_loss(x, ones({3, 4}));
      },
      [](const Tensor& x) { return l1_loss(x, ones_like(x)); },
      [](const Tensor& x) {
        return huber_loss(x, ones({3, 4}));
      },
      [](const Tensor& x) { return sum(x); },
      [](const Tensor& x) { return mean(x, {0}); },
      [](const Tensor& x) { return prod(x); },
      [](const Tensor& x) { return var(x, {1}); },
      [](const Tensor& x) { return deviation(x); },
      [](const Tensor& x) { return norm(x); },
      [](const Tensor& x) { return norm(x, {}, {.p = INFINITY}); },
      [](const Tensor& x) { return cumsum(x, 0); },
      [](const Tensor& x) { return exp(x); },
      [](const Tensor& x) { return log(x); },
      [](const Tensor& x) { return pow(x, 3); },
      [](const Tensor& x) { return pow(x, ones({4})); },
      [](const Tensor& x) { return square(x); },
      [](const Tensor& x) { return rsqrt(x); },
      [](const Tensor& x) { return softplus(x); },
  };
  const Op kept[] = {
      [](const Tensor& x) { return relu(x); },
      [](const Tensor& x) { return gelu(x); },
      [](const Tensor& x) { return tanh(x); },
      [](const Tensor& x) { return x * 2 + 1; },
      [](const Tensor& x) { return x + x; },
      [](const Tensor& x) { return dropout(x, 0.5, true); },
      [](const Tensor& x) { return max(x, {1}); },
      [](const Tensor& x) { return x.t().reshape({12}); },
      [](const Tensor& x) {
        return max_pool2d(x.reshape({1, 1, 3, 4}));
      },
      [](const Tensor& x) {
        return global_avg_pool(x.reshape({1, 3, 4}));
      },
      [](const Tensor& x) {
        return global_avg_pool(x.reshape({1, 2, 2, 3}).permute({0, 3, 1, 2}));
      },
      [](const Tensor& x) { return layer_norm(x, ones({4}), zeros({4})); },
      [](const Tensor& x) { return batch_norm(x, ones({4}), zeros({4}), zeros({4}), ones({4})); },
  };
  const Tensor values = rand({3, 4}, {}, 0.5, 2).to(half);
  const auto check = [&](const Op& op, DType wanted) {
    const Tensor x = trained(values), same = trained(values.to(f32));
    const Op again = op;
    manual_seed(3);
    const Tensor reference = again(same);
    Tensor y;
    {
      const Autocast guard(half);
      manual_seed(3);
      y = op(x);
    }
    EXPECT_EQ(y.dtype(), wanted);
    EXPECT_LT(distance(y, reference), wanted == f32 ? 1e-6 : 0x1p-8);
    ASSERT_TRUE(y.requires_grad());
    backward({y}, {ones_like(y)});
    backward({reference}, {ones_like(reference)});
    EXPECT_EQ(x.grad().dtype(), half);
  };
  for (const Op& op : single) {
    SCOPED_TRACE(&op - single);
    check(op, f32);
  }
  for (const Op& op : kept) {
    SCOPED_TRACE(&op - kept);
    check(op, half);
  }
}

TEST_P(Mixed, OperandsOfTwoDtypesMeetInSingle) {
  const DType half = GetParam();
  const Tensor x = rand({3, 4}, {}, 1, 2).to(half), y = rand({3, 4}, {}, 1, 2);
  const Tensor index = from<int64_t>({2, 0, 1}, {3});
  using Op = std::function<Tensor(const Tensor&, const Tensor&)>;
  const Op promoted[] = {
      [](const Tensor& a, const Tensor& b) { return a + b; },
      [](const Tensor& a, const Tensor& b) { return a - b; },
      [](const Tensor& a, const Tensor& b) { return a * b; },
      [](const Tensor& a, const Tensor& b) { return a / b; },
      [](const Tensor& a, const Tensor& b) { return maximum(a, b); },
      [](const Tensor& a, const Tensor& b) { return minimum(a, b); },
      [](const Tensor& a, const Tensor& b) { return where(gt(a, b), a, b); },
      [](const Tensor& a, const Tensor& b) {
        return cat({a, b}, 1);
      },
      [](const Tensor& a, const Tensor& b) {
        return stack({a, b});
      },
      [&](const Tensor& a, const Tensor& b) { return index_add(a, 0, index, b); },
      [](const Tensor& a, const Tensor& b) {
        return scatter_add(a, 1, zeros({3, 4}, i64), b);
      },
  };
  for (const Op& op : promoted) {
    SCOPED_TRACE(&op - promoted);
    for (const bool swapped : {false, true}) {
      const Tensor a = trained(swapped ? y : x), b = trained(swapped ? x : y);
      EXPECT_ERROR(op(a, b), name(half).data());  // nothing is promoted without being asked for
      Tensor result;
      {
        const Autocast guard(half);
        result = op(a, b);
      }
      EXPECT_EQ(result.dtype(), f32);
      EXPECT_LT(distance(result, op(a.detach().to(f32), b.detach().to(f32))), 1e-6);
      sum(result).backward();
      EXPECT_EQ(a.grad().dtype(), a.dtype());
      EXPECT_EQ(b.grad().dtype(), b.dtype());
    }
  }
}

TEST_P(Mixed, InPlaceWidensOnly) {
  const Tensor half = full({3}, 1.5, GetParam());
  Tensor single = full({3}, 2.0), narrow = raw::clone(half);
  const Autocast guard(GetParam());
  EXPECT_EQ(single.add_(half).mul_(half).sub_(half).div_(half).to_vector<float>(), std::vector<float>(3, 2.5));
  EXPECT_ERROR(narrow.add_(single), "[add_] the operands have dtypes");
}

TEST_P(Mixed, DoublePrecisionIsLeftAlone) {
  const Autocast guard(GetParam());
  const Tensor x = randn({4, 5}, f64), w = randn({3, 5}, f64), image = randn({1, 2, 5, 5}, f64),
               kernel = randn({3, 2, 3, 3}, f64);
  EXPECT_EQ(linear(x, w).dtype(), f64);
  EXPECT_EQ(softmax(x).dtype(), f64);
  EXPECT_TRUE(gradcheck([](const std::vector<Tensor>& in) { return sum(softmax(linear(in[0], in[1])) * 3); }, {x, w}));
  EXPECT_TRUE(gradcheck([](const std::vector<Tensor>& in) { return conv2d(in[0], in[1]); }, {image, kernel}));
  EXPECT_ERROR(linear(x, w.to(f32)), "[linear] the operands have dtypes f64 and f32");
  EXPECT_ERROR(x + w.to(f32), "[add] the operands have dtypes f64 and f32");
}

TEST(Autocast, NestsAndEnds) {
  const Tensor x = randn({2, 3}), w = randn({4, 3});
  const auto dtype = [&] { return linear(x, w).dtype(); };
  EXPECT_EQ(dtype(), f32);
  {
    const Autocast outer(bf16);
    EXPECT_EQ(dtype(), bf16);
    std::thread([&] { EXPECT_EQ(dtype(), f32); }).join();
    {
      const Autocast inner(f16);
      EXPECT_EQ(dtype(), f16);
      {
        const Autocast off;
        EXPECT_EQ(dtype(), f32);
        EXPECT_EQ(Autocast::dtype(), f32);
      }
      EXPECT_EQ(dtype(), f16);
    }
    EXPECT_EQ(dtype(), bf16);
    try {
      const Autocast inner(f16);
      linear(x, randn({4, 2}));
    } catch (const Error&) {
    }
    EXPECT_EQ(dtype(), bf16);
    EXPECT_ERROR(Autocast(f64), "[autocast] wants bf16, f16, or f32 for off, got f64");
    EXPECT_EQ(dtype(), bf16);
  }
  EXPECT_EQ(dtype(), f32);
}

/// The names of all ops that a result was made by.
std::vector<std::string> history(const Tensor& y) {
  std::vector<Node*> stack{node_of(y)};
  std::set<Node*> seen;
  std::vector<std::string> names;
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (!node || !seen.insert(node).second) continue;
    names.emplace_back(node->name());
    for (size_t i = 0; i < node->inputs.size(); ++i) stack.push_back(node->inputs[i].node.get());
  }
  return names;
}

TEST(Autocast, AWeightIsCastOnceAPass) {
  const Tensor w = trained(randn({3, 3})), x = randn({2, 3});
  const Autocast guard(bf16);
  const Tensor y = matmul(matmul(matmul(x, w), w), w);
  EXPECT_EQ(std::ranges::count(history(y), "to"), 1);
  sum(y).backward();
  // The same guard, another pass: the first one's graph is gone, and gradients add up.
  const auto once = w.grad().to_vector<float>();
  sum(matmul(matmul(matmul(x, w), w), w)).backward();
  const auto twice = w.grad().to_vector<float>();
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(twice[i], 2 * once[i]);
}

TEST(Autocast, AWriteToAWeightIsSeen) {
  Tensor w = trained(eye(3));
  const Tensor x = ones({1, 3});
  const Autocast guard(bf16);
  const auto value = [&] { return matmul(x, w).to_vector<float>()[0]; };
  EXPECT_EQ(value(), 1);
  w.set_grad(full({3, 3}, -1.0));
  optim::SGD sgd({{"w", w}}, {.lr = 1});
  sgd.step();
  EXPECT_EQ(value(), 4);  // 1 + 1 on the diagonal, 1 elsewhere
  {
    const NoGrad no_grad;
    w.fill_(2);
    EXPECT_EQ(value(), 6);
  }
  EXPECT_EQ(value(), 6);
}

/// A cast that was made without recording has no way back to the weight.
TEST(Autocast, AFirstUseWithoutGradientsDoesNotCutTheSecond) {
  const Tensor w = trained(randn({3, 3})), x = randn({2, 3});
  const Autocast guard(bf16);
  {
    const NoGrad no_grad;
    matmul(x, w);
  }
  const Tensor y = matmul(x, w);
  ASSERT_TRUE(y.requires_grad());
  sum(y).backward();
  EXPECT_TRUE(w.grad().defined());
  // And neither has one of a weight that wanted no gradient in between.
  Tensor again = w;
  again.requires_grad_(false).requires_grad_();
  sum(matmul(x, again)).backward();
  EXPECT_TRUE(again.grad().defined());
}

TEST(Autocast, GradientRulesDoNotSeeIt) {
  const Tensor x = trained(rand({3, 4}, {}, 1, 2).to(bf16)), y = trained(rand({3, 4}, {}, 1, 2).to(bf16));
  const Tensor z = sum(norm(x * y, {0}, {.p = 3}).to(bf16) + max(x / y, {0}) + norm(x, {0}).to(bf16));
  const Autocast guard(bf16);
  EXPECT_NO_THROW(z.backward());
  EXPECT_EQ(x.grad().dtype(), bf16);
}

TEST(Autocast, RecomputeReplaysInTheSameDtype) {
  const auto gradients = [](bool recomputed, bool guarded_backward) {
    manual_seed(2);
    const Tensor x = trained(randn({4, 8})), w = trained(randn({8, 8}) * 0.3);
    std::vector<DType> seen;
    const auto block = [&](const Tensor& h) {
      const Tensor y = matmul(dropout(relu(matmul(h, w)), 0.5, true), w);
      seen.push_back(y.dtype());
      return y;
    };
    Tensor loss;
    {
      const Autocast guard(bf16);
      const Tensor h = recomputed ? recompute(block, x) : block(x);
      loss = mean(square(h + x));
    }
    const Autocast other(guarded_backward ? f16 : f32);
    loss.backward();
    EXPECT_EQ(seen, std::vector<DType>(recomputed ? 2 : 1, bf16));
    auto all = x.grad().to_vector<float>();
    for (const float v : w.grad().to_vector<float>()) all.push_back(v);
    return all;
  };
  const auto plain = gradients(false, false);
  EXPECT_EQ(gradients(true, false), plain);
  EXPECT_EQ(gradients(true, true), plain) << "an Autocast around backward reached the replay";
}

struct Wrong : nn::Sequential {
  nn::Linear& fc1 = add<nn::Linear>("fc1", {.in = 4, .out = 3});
  nn::Linear& fc2 = add<nn::Linear>("fc2", {.in = 2, .out = 3});
};

TEST(Autocast, ErrorsNameTheModule) {
  Wrong net;
  const Autocast guard(bf16);
  EXPECT_ERROR(net(randn({5, 4})), "[linear] Wrong.fc2: weight wants 2 input features, input has 3");
  EXPECT_ERROR(net(ones({5, 4}, i64)), "[linear] Wrong.fc1: ");
}

}  // namespace
}  // namespace weft
