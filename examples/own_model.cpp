// A model of one's own: a block with a parameter of its own around attention, a network of such blocks, and its
// training on a task made up on the spot: to give back eight digits in the opposite order. Run:
// build/release/bin/example_own_model, which prints an accuracy of at least 95 % after a few seconds.
#include <weft.h>

#include <cstdio>

using namespace weft;

struct Block : nn::Module {
  nn::RMSNorm& norm = add<nn::RMSNorm>("norm", {.sizes = {32}});
  nn::MultiHeadAttention& attention = add<nn::MultiHeadAttention>("attention", {.width = 32, .heads = 4});
  nn::Linear& up = add<nn::Linear>("up", {.in = 32, .out = 64, .activation = Activation::gelu});
  nn::Linear& down = add<nn::Linear>("down", {.in = 64, .out = 32});
  Tensor& strength = parameter("strength", full({32}, 0.5));  // of what the block adds to x

  Tensor forward(const Tensor& x) override { return x + strength * down(up(attention(norm(x)))); }
};

struct Reverser : nn::Module {
  nn::Embedding& digits = add<nn::Embedding>("digits", {.rows = 10, .width = 32});
  nn::LearnedPositions& positions = add<nn::LearnedPositions>("positions", {.length = 8, .width = 32});
  Block& first = add<Block>("first");
  Block& second = add<Block>("second");
  nn::Linear& out = add<nn::Linear>("out", {.in = 32, .out = 10});

  Tensor forward(const Tensor& ids) override { return out(second(first(positions(digits(ids))))); }
};

int main() {
  manual_seed(1);
  Reverser net;
  net.init([](const std::string& name, Tensor& value) {
    if (name == "positions.weight") nn::init::normal(value, 0, 1);
  });
  optim::AdamW adam(net.parameters(), {.lr = 3e-3});
  for (int step = 0; step < 160; ++step) {
    const Tensor ids = randint(0, 10, {64, 8});
    Tensor loss = nn::cross_entropy(net(ids).flatten(0, 1), flip(ids, 1).flatten());
    adam.zero_grad();
    loss.backward();
    adam.step();
    if (step % 40 == 39) std::printf("step %d   loss %.4f\n", step + 1, loss.item());
  }

  NoGrad no_grad;
  const Tensor ids = randint(0, 10, {500, 8});
  const double accuracy = 100 * mean(eq(argmax(net(ids), -1), flip(ids, 1)).to(f32)).item();
  std::printf("%lld parameters, accuracy %.1f %%\n", static_cast<long long>(net.parameter_count()), accuracy);
  return accuracy >= 95 ? 0 : 1;
}
