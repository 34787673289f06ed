// Models: exact sizes, shapes, work, and that they learn.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "models/alexnet.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/mnist.h"
#include "models/models.h"
#include "models/text_cnn.h"
#include "models/texts.h"
#include "tensor/random.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

TEST(MnistNet, SizesAndWork) {
  models::MnistNet net;
  const nn::Summary s = net.summary({1, 1, 28, 28});
  EXPECT_EQ(s.parameters, 1'199'882);
  EXPECT_EQ(s["conv1"].parameters, 320);
  EXPECT_EQ(s["conv2"].parameters, 18'496);
  EXPECT_EQ(s["fc1"].parameters, 1'179'776);
  EXPECT_EQ(s["fc2"].parameters, 1'290);
  EXPECT_EQ(s["conv1"].multiply_adds, 194'688);
  EXPECT_EQ(s["conv2"].multiply_adds, 10'616'832);
  EXPECT_EQ(s["fc1"].multiply_adds, 1'179'648);
  EXPECT_EQ(s["fc2"].multiply_adds, 1'280);
  EXPECT_EQ(s.multiply_adds, 11'992'448);
  EXPECT_EQ(s["conv2"].output, Shape({1, 64, 24, 24}));
  EXPECT_EQ(s["flatten"].output, Shape({1, 9216}));
  EXPECT_NE(s.str().find("194,688"), std::string::npos);
}

TEST(Texts, SizesAreThoseOfTheTable) {
  EXPECT_EQ(models::TextCnn().parameter_count(), 6'000'000 + 230'656 + 65'792 + 257);
  for (const auto& [name, count] : {std::pair("lstm", 2'659'457), std::pair("transformer", 2'876'545)})
    EXPECT_EQ(models::texts::find(name).make({})->parameter_count(), count) << name;
}

TEST(MnistNet, ErrorsNameTheLayer) {
  models::MnistNet net;
  const std::string message = error_of([&] { net.conv2(zeros({64, 1, 28, 28})); });
  EXPECT_EQ(message.rfind("[conv2d] MnistNet.conv2: weight wants 32 input channels, input has 1", 0), 0u) << message;
  const std::string failed = error_of([&] { net.summary({1, 1, 32, 32}); });
  EXPECT_EQ(failed.rfind("[linear] MnistNet.fc1: ", 0), 0u) << failed;
  EXPECT_NE(failed.find("[1, 64, 28, 28]"), std::string::npos) << failed;  // the table up to there
}

TEST(MnistNet, ReluBeforeOrAfterThePoolIsTheSame) {
  manual_seed(2);
  models::MnistNet net;
  const Tensor x = randn({2, 1, 28, 28});
  const Tensor fused = net(x);
  const Tensor h = max_pool2d(relu(net.conv2(net.conv1(x))), {.kernel = 2});
  EXPECT_EQ(fused.to_vector<float>(), net.fc2(net.fc1(h.flatten(1))).to_vector<float>());
  EXPECT_EQ(net.layers().size(), 6u);
}

TEST(MnistNet, OneStepLowersTheLoss) {
  manual_seed(4);
  models::MnistNet net;
  const Tensor x = randn({8, 1, 28, 28}), wanted = randn({8, 10});
  const auto loss_of = [&] { return sum(square(net(x) - wanted)); };
  Tensor loss = loss_of();
  loss.backward();
  for (const Named& p : net.parameters()) {
    ASSERT_TRUE(p.value.grad().defined()) << p.name;
    EXPECT_EQ(p.value.grad().sizes(), p.value.sizes()) << p.name;
    NoGrad no_grad;
    Tensor value = p.value;
    value.sub_(p.value.grad() * 1e-3);
  }
  EXPECT_LT(loss_of().item(), 0.95 * loss.item());
}

TEST(LeNet5, Sizes) {
  models::LeNet5 net;
  EXPECT_EQ(net.parameter_count(), 61'706);
  EXPECT_EQ(net(zeros({2, 1, 28, 28})).sizes(), Shape({2, 10}));
}

TEST(AlexNet, Sizes) {
  models::AlexNet net;
  const nn::Summary s = net.summary({1, 3, 224, 224});
  EXPECT_EQ(s.parameters, 62'378'344);
  EXPECT_EQ(s["conv1"].output, Shape({1, 96, 55, 55}));
  EXPECT_EQ(s["pool5"].output, Shape({1, 256, 6, 6}));
  EXPECT_EQ(s.rows.back().output, Shape({1, 1000}));
  EXPECT_EQ(models::AlexNet({.groups = 2}).parameter_count(), 60'965'224);
}

TEST(MLP, Sizes) {
  models::MLP net({.sizes = {12, 8, 5}, .dropout = 0.2});
  EXPECT_EQ(net.parameter_count(), 12 * 8 + 8 + 8 * 5 + 5);
  EXPECT_EQ(net.layers().size(), 4u);
  EXPECT_EQ(net(randn({3, 4, 3})).sizes(), Shape({3, 5}));
  EXPECT_THROW(models::MLP({.sizes = {3}}), Error);
}

TEST(Models, ByName) {
  for (const models::Entry& entry : models::table()) {
    const auto net = models::make(entry.name);
    net->eval();
    NoGrad no_grad;
    Shape batch = entry.input;
    batch.insert(0, 2);
    EXPECT_EQ((*net)(zeros(batch)).sizes(), Shape({2, 10})) << entry.name;
  }
  EXPECT_EQ(models::make("mnist")->type(), "MnistNet");
  const std::string message = error_of([] { models::make("resnet"); });
  EXPECT_NE(message.find("mnist, lenet5, alexnet, mlp"), std::string::npos) << message;
}

}  // namespace
}  // namespace weft
