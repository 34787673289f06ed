// Nodes: their numbers, their links, and an end that does not recurse.
#include "autograd/node.h"

#include <atomic>
#include <cmath>

#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

std::atomic<uint64_t> next_sequence{1};
thread_local bool recording = true;
thread_local bool anomaly = false;

}  // namespace

bool grad_enabled() { return recording; }
NoGrad::NoGrad(bool off) : before_(recording) { recording = recording && !off; }
NoGrad::~NoGrad() { recording = before_; }
EnableGrad::EnableGrad() : before_(recording) { recording = true; }
EnableGrad::~EnableGrad() { recording = before_; }
AnomalyMode::AnomalyMode() : before_(anomaly) { anomaly = true; }
AnomalyMode::~AnomalyMode() { anomaly = before_; }
bool AnomalyMode::enabled() { return anomaly; }

Node::Node(const char* name)
    : name_(name), sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)), scope_(Scope::current()) {}

void Node::dispose() {
  // Deleting a node lets go of its inputs' nodes, which come here in turn: they wait in a list, so that a graph of a
  // million nodes needs no deep stack.
  thread_local std::vector<Node*>* waiting = nullptr;
  if (waiting) {
    waiting->push_back(this);
    return;
  }
  std::vector<Node*> list{this};
  waiting = &list;
  while (!list.empty()) {
    Node* node = list.back();
    list.pop_back();
    delete node;
  }
  waiting = nullptr;
}

LeafNode::LeafNode(const Tensor& leaf_tensor) : Node("leaf") {
  leaf = true;
  outputs.push_back({leaf_tensor.sizes(), leaf_tensor.dtype(), leaf_tensor.device(), {}});
}

Grads LeafNode::apply(FewOf<Output, 1>& gathered) {
  if (gathered[0].grad.defined()) add_whole(std::move(gathered[0].grad));
  merge_rows();
  rows_came = false;
  for (auto& hook : ready_hooks) hook(grad);
  return {};
}

void LeafNode::add_whole(Tensor incoming) {
  if (grad.defined() && raw::overlaps_itself(grad)) {  // an expanded one, from set_grad
    Tensor total = empty(grad.sizes(), {grad.dtype(), grad.device()});
    kernels::add(grad, incoming, total);
    grad = total;
  } else if (grad.defined()) {
    kernels::add(grad, incoming, grad);
    grad.storage()->bump_version();
  } else {
    // Its memory becomes the gradient's, unless that would keep a larger block alive for a part of it.
    const bool own = incoming.unique() && raw::is_dense(incoming) && incoming.storage()->bytes() == incoming.bytes();
    grad = own ? raw::detach(incoming) : raw::clone(incoming);
  }
}

SavedTensor::SavedTensor(const Tensor& x) {
  if (!grad_enabled()) return;
  value_ = raw::detach(x);
  version_ = x.storage()->version();
}

namespace detail {

void link_input(Node& node, const Tensor& x) {
  if (!x.defined()) return node.inputs.push_back({});
  const Tensor::Impl& impl = x.impl();
  node.inputs.push_back({Ref<Node>(static_cast<Node*>(impl.grad_node.get())), impl.grad_output});
}

void link_output(Node& node, const Tensor& y) {
  Tensor::Impl& impl = y.impl();
  impl.grad_output = static_cast<uint32_t>(node.outputs.size());
  node.outputs.push_back({impl.sizes, impl.dtype, impl.storage->device(), {}});
  impl.grad_node = Ref<RefCounted>(&node);
}

void check_finite(const char* what, const char* op, const Tensor& x) {
  if (!x.defined() || !is_floating(x.dtype())) return;
  for (double v : x.to_vector<double>())
    WEFT_CHECK(std::isfinite(v), op, "anomaly: {} of shape {} contains {}", what, str(x.sizes()),
               std::isnan(v) ? "NaN" : "infinity");
}

void check_in_place(const char* op, const Tensor& y, bool tracked) {
  WEFT_CHECK(!raw::overlaps_itself(y), op,
             "cannot write in place into {} with strides {}: several elements share one place in memory",
             str(y.sizes()), str(y.strides()));
  if (!grad_enabled()) return;
  const Node* node = node_of(y);
  WEFT_CHECK(!(node && node->leaf), op, "a leaf that requires a gradient cannot be changed in place; use NoGrad");
  // A view that is the last handle on its memory is as good as a tensor of its own.
  const bool seen_elsewhere = y.impl().view && !y.storage()->unique();
  WEFT_CHECK(!(node && seen_elsewhere), op,
             "a view of a tensor that requires a gradient cannot be changed in place while others see its memory");
  WEFT_CHECK(
      !(tracked && seen_elsewhere), op,
      "a view cannot take in values that require a gradient: the tensor behind it would not know; use cat or stack, "
      "or NoGrad");
}

}  // namespace detail
}  // namespace weft
