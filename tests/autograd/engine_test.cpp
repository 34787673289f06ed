// The tape and the engine.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"

namespace weft {
namespace {

TEST(Engine, MillionNodesRunAndAreFreed) {
  Tensor x = ones({1});
  x.requires_grad_();
  const int64_t before = memory::statistics().live;
  {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y + 1;
    y.backward();
    EXPECT_EQ(x.grad().item(), 1);
    y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y * 1;  // freed without a backward
  }
  x.set_grad({});
  EXPECT_EQ(memory::statistics().live, before);
}

TEST(Gradcheck, AcceptsRightAndRejectsWrongRules) {
  EXPECT_TRUE(gradcheck(tanh, {randn({4, 3}, f64)}));
  auto wrong = [](const std::vector<Tensor>& in) {
    return record("wrong", {in[0]}, in[0].detach() * 2, [](const Tensor& dy) -> Grads { return {dy * 3}; });
  };
  EXPECT_FALSE(gradcheck(wrong, {randn({4, 3}, f64)}));
}

}  // namespace
}  // namespace weft
