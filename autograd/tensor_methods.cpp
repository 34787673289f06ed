// The methods of Tensor that have gradients, and those that ask autograd: declared in tensor/tensor.h, which knows
// nothing of graphs.
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {

Tensor Tensor::narrow(int64_t dim, int64_t start, int64_t length) const {
  return record("narrow", {*this}, raw::narrow(*this, dim, start, length),
                [sizes = sizes(), dim, start, length](const Tensor& dy) -> Grads {
                  Tensor dx = zeros(sizes, {dy.dtype(), dy.device()});
                  Tensor part = raw::narrow(dx, dim, start, length);
                  kernels::copy(dy, part);
                  return {dx};
                });
}

Tensor Tensor::select(int64_t dim, int64_t index) const {
  return record("select", {*this}, raw::select(*this, dim, index),
                [sizes = sizes(), dim, index](const Tensor& dy) -> Grads {
                  Tensor dx = zeros(sizes, {dy.dtype(), dy.device()});
                  Tensor part = raw::select(dx, dim, index);
                  kernels::copy(dy, part);
                  return {dx};
                });
}

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  return record("transpose", {*this}, raw::transpose(*this, a, b),
                [a, b](const Tensor& dy) -> Grads { return {raw::transpose(dy, a, b)}; });
}

Tensor Tensor::permute(const Shape& order) const {
  return record("permute", {*this}, raw::permute(*this, order), [order](const Tensor& dy) -> Grads {
    Shape inverse = order;
    for (int64_t i = 0; i < order.size(); ++i) inverse[wrap_dim("permute", order[i], order.size())] = i;
    return {raw::permute(dy, inverse)};
  });
}

Tensor Tensor::expand(const Shape& wanted) const {
  return record("expand", {*this}, raw::expand(*this, wanted),
                [sizes = sizes()](const Tensor& dy) -> Grads { return {sum_to(dy, sizes)}; });
}

Tensor Tensor::reshape(const Shape& wanted) const {
  return record("reshape", {*this}, raw::reshape(*this, wanted),
                [sizes = sizes()](const Tensor& dy) -> Grads { return {raw::reshape(dy, sizes)}; });
}

Tensor Tensor::flatten(int64_t first, int64_t last) const {
  const int64_t a = wrap_dim("flatten", first, dim()), b = wrap_dim("flatten", last, dim());
  WEFT_CHECK(a <= b, "flatten", "dimension {} lies after {}", first, last);
  Shape wanted;
  for (int64_t i = 0; i < a; ++i) wanted.push_back(sizes()[i]);
  int64_t merged = 1;
  for (int64_t i = a; i <= b; ++i) merged *= sizes()[i];
  wanted.push_back(merged);
  for (int64_t i = b + 1; i < dim(); ++i) wanted.push_back(sizes()[i]);
  return reshape(wanted);
}

Tensor Tensor::squeeze(int64_t dim) const {
  return record("squeeze", {*this}, raw::squeeze(*this, dim),
                [sizes = sizes()](const Tensor& dy) -> Grads { return {raw::reshape(dy, sizes)}; });
}

Tensor Tensor::unsqueeze(int64_t dim) const {
  return record("unsqueeze", {*this}, raw::unsqueeze(*this, dim),
                [sizes = sizes()](const Tensor& dy) -> Grads { return {raw::reshape(dy, sizes)}; });
}

Tensor Tensor::contiguous() const {
  if (is_contiguous()) return *this;
  return record("contiguous", {*this}, raw::contiguous(*this), [](const Tensor& dy) -> Grads { return {dy}; });
}

Tensor Tensor::clone() const {
  return record("clone", {*this}, raw::clone(*this), [](const Tensor& dy) -> Grads { return {dy}; });
}

Tensor Tensor::to(DType wanted) const {
  if (dtype() == wanted) return *this;
  Tensor y = raw::to(*this, wanted);
  if (!is_floating(wanted)) return y;
  return record("to", {*this}, y, [from = dtype()](const Tensor& dy) -> Grads { return {raw::to(dy, from)}; });
}

Tensor Tensor::to(Device wanted) const {
  if (device() == wanted) return *this;
  auto moved = [](const Tensor& x, Device device) {
    Tensor out = weft::empty(x.sizes(), {x.dtype(), device});
    kernels::copy(raw::contiguous(x), out);
    return out;
  };
  return record("to", {*this}, moved(*this, wanted),
                [moved, from = device()](const Tensor& dy) -> Grads { return {moved(dy, from)}; });
}

bool Tensor::requires_grad() const { return static_cast<bool>(impl().grad_node); }

Tensor& Tensor::requires_grad_(bool on) {
  const Node* node = node_of(*this);
  WEFT_CHECK(!node || node->leaf, "requires_grad", "the tensor is the result of {}, not a leaf", node->name());
  WEFT_CHECK(!on || is_floating(dtype()), "requires_grad", "only floating tensors have gradients, this one is {}",
             name(dtype()));
  if (on && !node) impl().grad_node = Ref<RefCounted>(new LeafNode(*this));
  if (!on) impl().grad_node = {};
  return *this;
}

bool Tensor::is_leaf() const { return !node_of(*this) || node_of(*this)->leaf; }

Tensor Tensor::grad() const {
  Node* node = node_of(*this);
  return node && node->leaf ? static_cast<LeafNode*>(node)->grad : Tensor();
}

void Tensor::set_grad(const Tensor& grad) {
  Node* node = node_of(*this);
  WEFT_CHECK(node && node->leaf, "set_grad", "the tensor is not a leaf that requires a gradient");
  WEFT_CHECK(!grad.defined() || (grad.sizes() == sizes() && grad.dtype() == dtype() && grad.device() == device()),
             "set_grad", "the gradient is {} {}, the tensor {} {}", name(grad.dtype()), weft::str(grad.sizes()),
             name(dtype()), weft::str(sizes()));
  static_cast<LeafNode*>(node)->grad = grad;
}

Tensor Tensor::detach() const { return raw::detach(*this); }

Tensor& Tensor::fill_(Scalar value) {
  record_in_place(
      "fill_", *this, {*this}, [&] { kernels::fill(*this, value); },
      [](const Tensor& dy) -> Grads { return {zeros_like(dy)}; });
  return *this;
}

namespace {

/// Whether autocast lets `other` widen to y's dtype.
bool widens_into(const Tensor& y, const Tensor& other) { return y.dtype() == f32 && autocast::widens(other); }

/// `other` as an operand of an in-place op on y: expanded, and safe against overlapping memory.
Tensor in_place_operand(const char* op, const Tensor& y, const Tensor& other) {
  WEFT_CHECK(broadcast(op, y.sizes(), other.sizes()) == y.sizes(), op, "{} does not fit into {}", str(other.sizes()),
             str(y.sizes()));
  WEFT_CHECK(y.device() == other.device(), op, "the operands are on {} and {}", name(y.device()), name(other.device()));
  Tensor expanded = raw::expand(other, y.sizes());
  return raw::partly_overlap(y, expanded) ? raw::clone(expanded) : expanded;
}

void check_same_dtype(const char* op, const Tensor& y, const Tensor& other) {
  WEFT_CHECK(y.dtype() == other.dtype(), op, "the operands have dtypes {} and {}", name(y.dtype()),
             name(other.dtype()));
}

template <class Kernel, class Rule>
void binary_in_place(const char* op, const Kernel& kernel, Tensor& y, const Tensor& other, Rule&& rule) {
  check_same_dtype(op, y, other);
  const Tensor operand = in_place_operand(op, y, other);
  record_in_place(
      op, y, {y, other}, [&] { kernel(y, operand, y); }, std::forward<Rule>(rule));
}

}  // namespace

Tensor& Tensor::copy_(const Tensor& source) {
  const Tensor operand = in_place_operand("copy_", *this, source);
  record_in_place(
      "copy_", *this, {*this, source}, [&] { kernels::copy(operand, *this); },
      [sizes = source.sizes(), dtype = source.dtype()](const Tensor& dy) -> Grads {
        return {zeros_like(dy), raw::to(sum_to(dy, sizes), dtype)};
      });
  return *this;
}

Tensor& Tensor::add_(const Tensor& other) {
  if (widens_into(*this, other)) return add_(autocast::widened(other));
  binary_in_place("add_", kernels::add, *this, other, [sizes = other.sizes()](const Tensor& dy) -> Grads {
    return {dy, sum_to(dy, sizes)};
  });
  return *this;
}

Tensor& Tensor::sub_(const Tensor& other) {
  if (widens_into(*this, other)) return sub_(autocast::widened(other));
  binary_in_place("sub_", kernels::sub, *this, other, [sizes = other.sizes()](const Tensor& dy) -> Grads {
    return {dy, -sum_to(dy, sizes)};
  });
  return *this;
}

namespace {

/// `other` as the rule of a write into y needs it: from before the write, where it lies in the same memory.
SavedTensor saved_operand(const Tensor& y, const Tensor& other) {
  return SavedTensor(other.storage() == y.storage() ? raw::clone(other) : other);
}

}  // namespace

Tensor& Tensor::mul_(const Tensor& other) {
  if (widens_into(*this, other)) return mul_(autocast::widened(other));
  // The gradient of `other` needs this tensor as it was before the write.
  const SavedTensor before = needs_grad(other) ? SavedTensor(raw::clone(*this)) : SavedTensor();
  const SavedTensor factor = needs_grad(*this) ? saved_operand(*this, other) : SavedTensor();
  binary_in_place("mul_", kernels::mul, *this, other,
                  [before, factor, sizes = other.sizes()](const Tensor& dy) -> Grads {
                    return {factor.defined() ? dy * factor() : Tensor(),
                            before.defined() ? sum_to(dy * before(), sizes) : Tensor()};
                  });
  return *this;
}

Tensor& Tensor::div_(const Tensor& other) {
  if (widens_into(*this, other)) return div_(autocast::widened(other));
  const SavedTensor before = needs_grad(other) ? SavedTensor(raw::clone(*this)) : SavedTensor();
  binary_in_place("div_", kernels::div, *this, other,
                  [before, other = saved_operand(*this, other), sizes = other.sizes()](const Tensor& dy) -> Grads {
                    const Tensor scaled = dy / other();
                    return {scaled, before.defined() ? -sum_to(scaled * before() / other(), sizes) : Tensor()};
                  });
  return *this;
}

Tensor& Tensor::add_(double value) { return add_(number_like(*this, value)); }
Tensor& Tensor::mul_(double value) { return mul_(number_like(*this, value)); }

}  // namespace weft
