// The MNIST net on the first real images: it learns, and the same seed gives the same losses, bit for bit.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "autograd/autograd.h"
#include "data/loader.h"
#include "data/mnist.h"
#include "models/mnist.h"
#include "nn/loss.h"
#include "optim/adam.h"
#include "tensor/random.h"
#include "train/evaluate.h"

namespace weft {
namespace {

data::Subset first(const data::Dataset& dataset, int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return {dataset, indices};
}

std::vector<double> train(models::MnistNet& net, const data::Dataset& images, int64_t steps) {
  optim::AdamW adam(net.parameters(), {.lr = 1e-3});
  data::Loader loader(images, {.batch = 64, .shuffle = true, .workers = 1, .seed = 6});
  std::vector<double> losses;
  for (auto [x, y] : loader) {
    adam.zero_grad();
    const Tensor loss = nn::cross_entropy(net(x), y);
    loss.backward();
    adam.step();
    losses.push_back(loss.item());
    if (static_cast<int64_t>(losses.size()) == steps) break;
  }
  return losses;
}

TEST(Learning, MnistNetLearnsAndRepeatsBitForBit) {
  const char* folder = std::getenv("WEFT_DATA");
  if (!folder) GTEST_SKIP() << "skipped: WEFT_DATA names no folder with the real MNIST";
  const auto [train_set, test_set] = data::mnist(data::find_mnist(folder));
  const data::Subset images = first(train_set, 150 * 64);
  manual_seed(6);
  models::MnistNet net;
  const std::vector<double> losses = train(net, images, WEFT_LEARNING_STEPS);
  manual_seed(6);
  models::MnistNet again;
  const std::vector<double> repeated = train(again, images, WEFT_LEARNING_STEPS / 5);
  for (size_t i = 0; i < repeated.size(); ++i) EXPECT_EQ(losses[i], repeated[i]) << "step " << i;
  if (WEFT_LEARNING_STEPS < 150) return;
  EXPECT_GT(train::evaluate(net, train::classification, first(test_set, 2000)).accuracy, 93);
}

}  // namespace
}  // namespace weft
