// Rotary positions: value and gradient, which is the turn back.
#include "autograd/ops/rotary.h"

#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

Tensor turned(const Tensor& x, const RotaryParameters& parameters, bool back) {
  const Tensor rows = x.strides()[3] == 1 ? x : raw::contiguous(x);
  Tensor out = empty_like(rows);
  kernels::rotary(rows, parameters, back, out);
  return out;
}

}  // namespace

Tensor rotary(const Tensor& x, const RotaryOptions& options) {
  WEFT_CHECK(x.dim() == 4 && x.size(3) % 2 == 0, "rotary", "wants [B, H, T, D] with an even D, got {}", str(x.sizes()));
  WEFT_CHECK(is_floating(x.dtype()), "rotary", "wants a floating dtype, got {}", name(x.dtype()));
  WEFT_CHECK(options.base > 0, "rotary", "wants a base above 0, got {}", options.base);
  return record("rotary", {x}, turned(x, options, false),
                [options](const Tensor& dy) -> Grads { return {turned(dy, options, true)}; });
}

}  // namespace weft
