// Training in 16 bits by hand: Autocast around the forward, and for f16 a LossScaler around backward and step.
// It prints the loss at the start and after 100 steps of each, which must be below a tenth.
#include <weft.h>

#include <cstdio>

using namespace weft;

/// Learns a row's largest element; first and last loss.
std::pair<double, double> learn(DType dtype) {
  manual_seed(1);
  const Tensor x = randn({256, 8}), y = argmax(x, 1);
  models::MLP net({.sizes = {8, 64, 8}});
  optim::AdamW adam(net.parameters(), {.lr = 1e-2});
  optim::LossScaler scaler({.enabled = dtype == f16});  // bf16 has the range of f32
  double first = 0, last = 0;
  for (int step = 0; step <= 100; ++step) {
    adam.zero_grad();
    Tensor loss;
    {
      const Autocast guard(dtype);  // f32: off
      loss = nn::cross_entropy(net(x), y);
    }
    scaler.scale(loss).backward();
    if (scaler.unscale(adam)) optim::clip_grad_norm(net.parameters(), 1);
    scaler.step(adam);
    (step == 0 ? first : last) = loss.item();
  }
  return {first, last};
}

int main() {
  bool learned = true;
  for (const DType dtype : {f32, bf16, f16}) {
    const auto [first, last] = learn(dtype);
    std::printf("%-4s  loss %.3f → %.3f\n", name(dtype).data(), first, last);
    learned = learned && last < first / 10;
  }
  return learned ? 0 : 1;
}
