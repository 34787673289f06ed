// The thread's autocast dtype, and the casts of parameters that are kept.
#include "autograd/autocast.h"

#include "autograd/record.h"

namespace weft {
namespace {

thread_local DType current_dtype = f32;
thread_local Autocast* current = nullptr;

}  // namespace

DType Autocast::dtype() { return current_dtype; }

Autocast::Autocast(DType dtype) : outer_(current), outer_dtype_(current_dtype), dtype_(dtype) {
  WEFT_CHECK(dtype == f32 || autocast::detail::is_half(dtype), "autocast", "wants bf16, f16, or f32 for off, got {}",
             name(dtype));
  current = this;
  current_dtype = dtype;
}

Autocast::~Autocast() {
  current = outer_;
  current_dtype = outer_dtype_;
}

Tensor Autocast::cast(const Tensor& x) {
  const Node* node = node_of(x);
  if (!node || !node->leaf) return x.to(dtype_);  // an activation is seldom used twice
  Cast& c = casts_[&x.impl()];
  // A cast that was not recorded has no gradient, one whose graph ran backward has none any more.
  const Node* made = c.value.defined() ? node_of(c.value) : nullptr;
  const bool holds = c.value.defined() && c.storage == x.storage() && c.version == x.storage()->version() &&
                     c.leaf == x.impl().grad_node && c.recorded == grad_enabled() && !(made && made->freed);
  if (!holds) c = {x.ref(), x.storage(), x.impl().grad_node, x.storage()->version(), grad_enabled(), x.to(dtype_)};
  return c.value;
}

namespace autocast {

Tensor narrowed(const Tensor& x) { return x.defined() && detail::narrows_to(current_dtype, x) ? current->cast(x) : x; }

bool mixed(const std::vector<Tensor>& list) {
  if (current_dtype == f32) return false;
  bool differ = false;
  for (const Tensor& x : list) {
    if (x.dtype() != f32 && !detail::is_half(x)) return false;
    differ = differ || x.dtype() != list[0].dtype();
  }
  return differ;
}

std::vector<Tensor> widened(const std::vector<Tensor>& list) {
  std::vector<Tensor> wide;
  for (const Tensor& x : list) wide.push_back(widened(x));
  return wide;
}

}  // namespace autocast
}  // namespace weft
