// Weights to a file and back, into another network of the same shape.
// Run: build/release/bin/example_weights, which prints `the same answers`.
#include <weft.h>

#include <cstdio>
#include <filesystem>

using namespace weft;

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", {.in = 8, .out = 16});
  nn::Linear& fc2 = add<nn::Linear>("fc2", {.in = 16, .out = 4});
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

int main() {
  const std::string file = "weft-example.safetensors";
  Net net, other;
  const Tensor x = randn({5, 8});

  save(file, net.state_dict());
  other.load_state_dict(load(file));  // missing, unexpected and misshapen names: one error that lists them all

  std::filesystem::remove(file);
  const bool same = net(x).to_vector<float>() == other(x).to_vector<float>();
  std::puts(same ? "the same answers" : "other answers");
  return same ? 0 : 1;
}
