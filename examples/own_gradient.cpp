// An operation with its own gradient rule, written in a program, and the check of that rule by differences.
// Run: build/release/bin/example_own_gradient, which prints `swish: gradient right`.
#include <weft.h>

#include <cstdio>

using namespace weft;

Tensor swish(const Tensor& x) {
  Tensor s = sigmoid(x.detach());
  return record("swish", {x}, x.detach() * s, [x = SavedTensor(x), s = SavedTensor(s)](const Tensor& dy) -> Grads {
    return {dy * s() * (1.0 + x() * (1.0 - s()))};
  });
}

int main() {
  const GradcheckResult result = gradcheck(swish, {randn({4, 3}, f64)});
  std::printf("swish: gradient %s\n", result ? "right" : result.message.c_str());
  return result ? 0 : 1;
}
