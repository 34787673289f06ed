// A program outside of Weft, built against the installed package: a layer and a model of its own learn to tell two
// spirals apart. Prints the accuracy; exit code 1 where it stays below 99 %.
#include <weft.h>

#include <cmath>
#include <cstdio>
#include <numbers>

using namespace weft;

struct Gated : nn::Module {
  struct Options {
    int64_t in = 0, out = 0;
  };
  explicit Gated(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return tanh(value(x)) * sigmoid(gate(x)); }

  const Options options;
  nn::Linear& value = add<nn::Linear>("value", {.in = options.in, .out = options.out});
  nn::Linear& gate = add<nn::Linear>("gate", {.in = options.in, .out = options.out});
};

struct SpiralNet : nn::Module {
  Gated& first = add<Gated>("first", {.in = 2, .out = 48});
  Gated& second = add<Gated>("second", {.in = 48, .out = 48});
  nn::Linear& out = add<nn::Linear>("out", {.in = 48, .out = 2});
  Tensor forward(const Tensor& x) override { return out(second(first(x))); }
};

int main() {
  constexpr int64_t n = 600;
  std::vector<float> points;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < n; ++i) {
    const double radius = 0.2 + 1.8 * static_cast<double>(i) / n;
    const double angle = 4 * radius + static_cast<double>(i % 2) * std::numbers::pi;
    points.insert(points.end(),
                  {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))});
    labels.push_back(i % 2);
  }
  const Tensor x = from(points, {n, 2}), y = from(labels, {n});

  SpiralNet net;
  optim::AdamW adam(net.parameters(), {.lr = 1e-2});
  double loss = 0;
  for (int step = 0; step < 300; ++step) {
    adam.zero_grad();
    const Tensor l = nn::cross_entropy(net(x), y);
    l.backward();
    adam.step();
    loss = l.item();
  }

  const NoGrad no_grad;
  const std::vector<int64_t> predicted = argmax(net(x), -1).to_vector<int64_t>();
  int64_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += predicted[i] == labels[i];
  const double accuracy = static_cast<double>(right) / n;
  std::printf("two spirals: loss %.4f, accuracy %.2f %%\n", loss, 100 * accuracy);
  return accuracy >= 0.99 ? 0 : 1;
}
