// Modules: names, sharing, state, modes, errors, conversion, summary.
#include "nn/module.h"

#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/work.h"
#include "nn/activation.h"
#include "nn/sequential.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

std::vector<std::string> names(const std::vector<Named>& list) {
  std::vector<std::string> out;
  for (const Named& one : list) out.push_back(one.name);
  return out;
}

using Names = std::vector<std::string>;

/// y = x · scale + shift, with a buffer that counts its calls.
struct Scale : nn::Module {
  struct Options {
    int64_t size = 3;
    bool shift = true;
  };
  explicit Scale(Options o)
      : scale(parameter("scale", full({o.size}, 2))),
        shift(parameter("shift", o.shift ? zeros({o.size}) : Tensor())),
        calls(buffer("calls", zeros({}, i64))) {}
  Tensor forward(const Tensor& x) override {
    count_multiply_adds(x.numel());
    calls.add_(training() ? 1 : 100);
    Tensor y = x * scale;
    return shift.defined() ? y + shift : y;
  }
  Tensor& scale;
  Tensor& shift;
  Tensor& calls;

 protected:
  void reset_own_parameters() override { scale.fill_(2); }
};

struct Net : nn::Module {
  Scale& first = add<Scale>("first", {.size = 3});
  Scale& second = add<Scale>("second", {.size = 3, .shift = false});
  nn::Sequential& tail = add<nn::Sequential>("tail", nn::make<Scale>({.size = 3}), nn::make<nn::ReLU>());
  Tensor& offset = parameter("offset", zeros({3}));
  Tensor forward(const Tensor& x) override { return tail(second(relu(first(x)))) + offset; }
};

TEST(Module, NamesFollowTheDeclaration) {
  Net net;
  EXPECT_EQ(names(net.parameters()),
            (Names{"offset", "first.scale", "first.shift", "second.scale", "tail.0.scale", "tail.0.shift"}));
  EXPECT_EQ(names(net.buffers()), (Names{"first.calls", "second.calls", "tail.0.calls"}));
  EXPECT_EQ(net.type(), "Net");
  EXPECT_EQ(net.tail.children()[0].module->path(), "Net.tail.0");
  EXPECT_EQ(net.parameter_count(), 18);
  EXPECT_TRUE(net.first.scale.requires_grad());
  EXPECT_FALSE(net.first.calls.requires_grad());
}

TEST(Module, TypesLoseTheirSurroundings) {
  struct Local : nn::Module {};
  EXPECT_EQ(Local().type(), "Local");
  EXPECT_EQ(nn::ReLU().type(), "ReLU");
}

TEST(Module, RefusesBadNames) {
  nn::Sequential net;
  net.add<nn::ReLU>("a");
  EXPECT_NE(error_of([&] { net.add<nn::ReLU>("a"); }).find("'a' already"), std::string::npos);
  EXPECT_NE(error_of([&] { net.add<nn::ReLU>("a.b"); }).find("'a.b'"), std::string::npos);
  EXPECT_NE(error_of([&] { net.add<nn::ReLU>(""); }).find("''"), std::string::npos);
  EXPECT_NE(error_of([&] { net.add("b", std::unique_ptr<nn::ReLU>()); }).find("null"), std::string::npos);
  EXPECT_EQ(net.children().size(), 1u);
}

TEST(Module, ErrorsNameThePath) {
  Net net;
  EXPECT_EQ(error_of([&] { net(ones({2, 4})); }).rfind("[mul] Net.first: ", 0), 0u);
  EXPECT_EQ(error_of([&] { net.tail(ones({2, 4})); }).rfind("[mul] Net.tail.0: ", 0), 0u);
  Scale alone({.size = 2});
  EXPECT_EQ(error_of([&] { alone(ones({3})); }).rfind("[mul] Scale: ", 0), 0u);
  EXPECT_EQ(Scope::current(), 0u);
}

TEST(Module, PathFollowsWhenAModuleIsTakenOver) {
  auto scale = nn::make<Scale>({.size = 2});
  EXPECT_EQ(error_of([&] { (*scale)(ones({3})); }).rfind("[mul] Scale: ", 0), 0u);
  nn::Sequential net;
  net.eval();
  Scale& held = net.add("inner", std::move(scale));
  EXPECT_EQ(error_of([&] { held(ones({3})); }).rfind("[mul] Sequential.inner: ", 0), 0u);
  EXPECT_FALSE(held.training());
}

TEST(Module, AnomaliesNameThePath) {
  Net net;
  AnomalyMode anomaly;
  net.second.scale = full({3}, std::numeric_limits<double>::infinity()).requires_grad_();
  const std::string message = error_of([&] { net(ones({1, 3})); });
  EXPECT_NE(message.find("Net.second"), std::string::npos) << message;
}

TEST(Module, MemoryIsOwnedByTheModuleThatTookIt) {
  Net net;
  const Tensor y = net.first(ones({100, 3}));
  for (const memory::Owner& owner : memory::owners())
    if (owner.path == "Net.first") return;
  FAIL() << "no memory is booked on Net.first";
}

TEST(Module, SharedParametersComeOnce) {
  struct Tied : nn::Module {
    Scale& a = add<Scale>("a", {.size = 3});
    Scale& b = add<Scale>("b", {.size = 3});
    Tied() { b.scale = a.scale; }
    Tensor forward(const Tensor& x) override { return b(a(x)); }
  } net;
  EXPECT_EQ(names(net.parameters()), (Names{"a.scale", "a.shift", "b.shift"}));
  EXPECT_EQ(names(net.state_dict()), (Names{"a.scale", "a.shift", "a.calls", "b.shift", "b.calls"}));
  sum(net(ones({3}))).backward();  // y = 4: dy/ds = 2 s at both places together
  EXPECT_EQ(net.a.scale.grad().to_vector<double>(), (std::vector<double>{4, 4, 4}));
  EXPECT_EQ(net.b.scale.grad().to_vector<double>(), (std::vector<double>{4, 4, 4}));
  net.to(f64);
  EXPECT_EQ(names(net.parameters()).size(), 3u);
  EXPECT_EQ(&net.a.scale.impl(), &net.b.scale.impl());

  std::vector<Named> state;  // a file that holds both names, or only the second
  for (const Named& one : net.state_dict()) state.push_back({one.name, one.value.clone()});
  state.push_back({"b.scale", full({3}, 5, f64)});
  net.load_state_dict(state);
  EXPECT_EQ(net.a.scale.to_vector<double>()[0], 2);
  state.erase(state.begin());
  net.load_state_dict(state);
  EXPECT_EQ(net.a.scale.to_vector<double>()[0], 5);
}

TEST(Module, StateMakesTheRound) {
  Net from, into;
  from.init([](const std::string&, Tensor& x) { x.copy_(rand(x.sizes())); });
  from(ones({1, 3}));
  std::vector<Named> state;
  for (const Named& one : from.state_dict()) {
    EXPECT_FALSE(one.value.requires_grad());
    state.push_back({one.name, one.value.clone()});
  }
  std::swap(state.front(), state.back());  // order does not matter
  into.load_state_dict(state);
  EXPECT_EQ(into.first.calls.item(), 1);
  const Tensor x = randn({4, 3});
  EXPECT_EQ(into(x).to_vector<float>(), from(x).to_vector<float>());
  EXPECT_TRUE(into.first.scale.requires_grad());
}

TEST(Module, StateThatDoesNotFitIsListedWholeAndChangesNothing) {
  Net net;
  std::vector<Named> state;
  for (const Named& one : net.state_dict()) state.push_back({one.name, full(one.value.sizes(), 7, one.value.dtype())});
  state.erase(state.begin());                     // offset
  state[0].value = zeros({4});                    // first.scale
  state[1].value = zeros({3}, f64);               // first.shift
  state[3].value = {};                            // second.scale
  state.push_back({"second.shift", zeros({3})});  // there is none
  state.push_back({"tail.0.scale", zeros({3})});  // a second time
  const std::string message = error_of([&] { net.load_state_dict(state); });
  EXPECT_EQ(message.rfind("[load_state_dict] Net: 6 of the names", 0), 0u) << message;
  for (const char* part :
       {"offset is missing", "first.scale is [3] here, [4] was given", "first.shift is f32 here, f64 was given",
        "second.scale is given without a value", "second.shift is unexpected", "tail.0.scale is given twice"})
    EXPECT_NE(message.find(part), std::string::npos) << part << " is not in " << message;
  EXPECT_EQ(net.tail.parameters()[0].value.to_vector<double>()[0], 2);
  EXPECT_EQ(net.first.calls.item(), 0);
}

TEST(Module, StateMayComeFromTheModuleItself) {
  Net net;
  net.init([](const std::string& name, Tensor& x) { x.fill_(name == "first.scale" ? 3 : 5); });
  std::vector<Named> state = net.state_dict();
  for (Named& one : state) {
    if (one.name == "first.scale")
      one.name = "second.scale";
    else if (one.name == "second.scale")
      one.name = "first.scale";
  }
  net.load_state_dict(state);
  EXPECT_EQ(net.first.scale.to_vector<double>()[0], 5);
  EXPECT_EQ(net.second.scale.to_vector<double>()[0], 3);
}

TEST(Module, TrainAndEvalReachAllChildren) {
  Net net;
  EXPECT_TRUE(net.training());
  net.eval();
  EXPECT_FALSE(net.tail.children()[0].module->training());
  net(ones({3}));
  EXPECT_EQ(net.first.calls.item(), 100);
  net.first.train();
  EXPECT_FALSE(net.training());
  EXPECT_FALSE(net.second.training());
  net(ones({3}));
  EXPECT_EQ(net.first.calls.item(), 101);
}

TEST(Module, ConversionKeepsIdentityGradientsAndHooks) {
  Net net;
  const std::vector<Named> held = net.parameters();  // what an optimizer holds
  int calls = 0;
  register_ready_hook(net.first.scale, [&](Tensor&) { ++calls; });
  sum(net(ones({3}))).backward();
  const std::vector<float> before = net.first.scale.grad().to_vector<float>();
  net.to(f64);
  EXPECT_EQ(held[1].value.dtype(), f64);
  EXPECT_EQ(net.first.calls.dtype(), i64);
  EXPECT_EQ(net.first.scale.grad().dtype(), f64);
  EXPECT_EQ(net.first.scale.grad().to_vector<float>(), before);
  sum(net(ones({3}, f64))).backward();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(net.first.scale.grad().to_vector<double>()[0], 2.0 * before[0]);
  EXPECT_NE(error_of([&] { net.to(i64); }), "no error");
  net.zero_grad();
  EXPECT_FALSE(net.first.scale.grad().defined());
}

TEST(Module, ResetDrawsDefaultsAgain) {
  Net net;
  net.init([](const std::string&, Tensor& x) { x.fill_(0); });
  net.reset_parameters();
  EXPECT_EQ(net.first.scale.to_vector<double>()[0], 2);
}

TEST(Module, SummaryCounts) {
  struct Unused : Net {
    Scale& never = add<Scale>("never", {.size = 5});
  } net;
  net.second.train(false);
  const nn::Summary s = net.summary({4, 3});
  EXPECT_EQ(s["first"].output, Shape({4, 3}));
  EXPECT_EQ(s["first"].parameters, 6);
  EXPECT_EQ(s["first"].multiply_adds, 12);
  EXPECT_EQ(s["tail"].multiply_adds, 0);  // its child's are its child's
  EXPECT_EQ(s["tail.0"].multiply_adds, 12);
  EXPECT_EQ(s["tail.0"].depth, 2);
  EXPECT_FALSE(s["never"].called);
  EXPECT_EQ(s.parameters, net.parameter_count());
  EXPECT_EQ(s.multiply_adds, 36);
  EXPECT_EQ(net.first.calls.item(), 100);  // evaluation mode, once
  EXPECT_TRUE(net.training());
  EXPECT_TRUE(net.first.training());
  EXPECT_FALSE(net.second.training());
  EXPECT_NE(s.str().find("tail.1"), std::string::npos);
  EXPECT_NE(s.str().find("not called"), std::string::npos);
  EXPECT_THROW(s["third"], Error);
}

TEST(Module, SummaryOfAShapeErrorShowsHowFarItWent) {
  Net net;
  net.second.scale = ones({7}).requires_grad_();
  const std::string message = error_of([&] { net.summary({4, 3}); });
  EXPECT_EQ(message.rfind("[mul] Net.second: ", 0), 0u) << message;
  const size_t first = message.find("\nfirst "), second = message.find("\nsecond ");
  ASSERT_NE(first, std::string::npos) << message;
  ASSERT_NE(second, std::string::npos) << message;
  EXPECT_NE(message.find("failed", second), std::string::npos);
  EXPECT_EQ(message.find("\ntail "), std::string::npos);
  EXPECT_TRUE(net.training());
}

TEST(Module, WithoutAForwardSaysSo) {
  struct Empty : nn::Module {
  } empty_module;
  EXPECT_EQ(error_of([&] { empty_module(ones({1})); }), "[forward] Empty: Empty has no forward of one tensor");
}

TEST(Sequential, CallsItsPartsInOrder) {
  nn::Sequential net;
  net.add<Scale>("double", {.size = 3, .shift = false});
  net.add("minus", [](const Tensor& x) { return x - 5; });
  net.add<nn::ReLU>("relu");
  const Scale::Options options{.size = 7};
  nn::Sequential other;
  EXPECT_EQ(other.add<Scale>("from_a_variable", options).scale.numel(), 7);
  EXPECT_EQ(net(from<float>({1, 2, 3}, {3})).to_vector<float>(), (std::vector<float>{0, 0, 1}));
  Tensor h = from<float>({1, 2, 3}, {3});
  ASSERT_EQ(net.layers().size(), 3u);
  for (nn::Module* layer : net.layers()) h = (*layer)(h);
  EXPECT_EQ(h.to_vector<float>(), (std::vector<float>{0, 0, 1}));
}

TEST(Sequential, ResidualAddsItsInput) {
  nn::Residual block(nn::make<Scale>({.size = 2}), nn::make<Scale>({.size = 2}));
  EXPECT_EQ(block(from<float>({1, -2}, {2})).to_vector<float>(), (std::vector<float>{5, -10}));
  EXPECT_EQ(block.layers().size(), 1u);
  EXPECT_EQ(names(block.parameters())[2], "1.scale");
}

TEST(Module, EvaluationGivesEachPartItsModeBack) {
  nn::Sequential net;
  net.add<nn::ReLU>("free");
  net.add<nn::ReLU>("frozen").eval();
  {
    const nn::Evaluation evaluation(net);
    for (const auto& child : net.children()) EXPECT_FALSE(child.module->training());
  }
  EXPECT_TRUE(net.training());
  EXPECT_TRUE(net.children()[0].module->training());
  EXPECT_FALSE(net.children()[1].module->training());
}

}  // namespace
}  // namespace weft
