// A model and its training by hand, on the first images of MNIST.
// Run: build/release/bin/example_training_loop FOLDER, with the four MNIST files in FOLDER (or in $WEFT_DATA). It
// prints the accuracy on the first test images, which passes 80 % after 64 steps.
#include <weft.h>

#include <cstdio>
#include <cstdlib>
#include <numeric>

using namespace weft;

struct Net : nn::Module {
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", {.in = 1, .out = 32, .kernel = 3});
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", {.in = 32, .out = 64, .kernel = 3});
  nn::Linear& fc1 = add<nn::Linear>("fc1", {.in = 9216, .out = 128});
  nn::Linear& fc2 = add<nn::Linear>("fc2", {.in = 128, .out = 10});

  Tensor forward(const Tensor& x) override {
    Tensor h = max_pool2d(relu(conv2(relu(conv1(x)))), {.kernel = 2});
    return fc2(relu(fc1(h.flatten(1))));
  }
};

data::Subset first(const data::Dataset& dataset, size_t count) {
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  return {dataset, indices};
}

int main(int argc, char** argv) {
  const char* shared = std::getenv("WEFT_DATA");
  if (argc < 2 && !shared) {
    std::puts("skipped: no folder given, and WEFT_DATA is not set");
    return 77;
  }
  const auto [train, test] = data::mnist(data::find_mnist(argc > 1 ? argv[1] : shared));
  const data::Subset train_set = first(train, 64 * 64), test_set = first(test, 1000);

  Net net;
  optim::AdamW adam(net.parameters(), {.lr = 1e-3});
  data::Loader loader(train_set, {.batch = 64, .shuffle = true, .workers = 2});
  for (auto [x, y] : loader) {
    adam.zero_grad();
    Tensor loss = nn::cross_entropy(net(x), y);
    loss.backward();
    adam.step();
  }

  const double accuracy = train::evaluate(net, train::classification, test_set).accuracy;
  std::printf("accuracy %.1f %%\n", accuracy);
  return accuracy >= 80 ? 0 : 1;
}
