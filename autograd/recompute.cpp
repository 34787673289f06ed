// Activation checkpointing: the forward's activations are not kept, its backward runs the forward again.
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/record.h"
#include "tensor/random.h"

namespace weft {
namespace {

thread_local bool replay = false;

/// A second forward: draws what the first one drew, and leaves the generator where it stood, also where f throws.
struct Replaying {
  explicit Replaying(Philox draws) {
    replay = true;
    default_generator().set_state(draws);
  }
  ~Replaying() {
    replay = before;
    default_generator().set_state(now);
  }
  bool before = replay;
  Philox now = default_generator().state();
};

}  // namespace

bool replaying() { return replay; }

Tensor recompute(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  if (!grad_enabled()) return f(x);
  const Philox draws = default_generator().state();
  Tensor y;
  {
    const NoGrad no_grad;
    y = f(x.detach()).detach();  // a handle of its own, even where f gives back a tensor from outside
  }
  // Recorded even where x requires no gradient, since the parameters inside f may.
  Tensor token = empty({0});
  token.requires_grad_();
  return record(
      "recompute", {x, token}, y,
      [f, x = SavedTensor(x), wanted = needs_grad(x), draws, dtype = Autocast::dtype()](const Tensor& dy) -> Grads {
        Tensor input = x().detach();
        if (wanted) input.requires_grad_();
        Tensor again;
        {
          const EnableGrad grad;
          const Autocast autocast(dtype);
          const Replaying replaying(draws);
          again = f(input);
        }
        if (again.requires_grad()) backward({again}, {dy});
        return {input.grad(), Tensor()};
      });
}

}  // namespace weft
