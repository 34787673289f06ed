// Backward: nodes run in falling order of creation, each once, when all its consumers have run; a leaf as soon as its
// gradient is complete. No recursion, and the same order every time.
#include <algorithm>
#include <atomic>
#include <queue>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/threads.h"
#include "tensor/view.h"

namespace weft {
namespace {

thread_local const char* running_rule = nullptr;
thread_local std::vector<uint64_t> outer_passes;  // that wait, on this thread, for the one that runs
thread_local std::vector<std::function<void()>>* end_callbacks = nullptr;
std::atomic<uint64_t> next_pass{1};

struct ByCreation {
  bool operator()(const Ref<Node>& a, const Ref<Node>& b) const { return a->sequence() < b->sequence(); }
};
using ReadyQueue = std::priority_queue<Ref<Node>, std::vector<Ref<Node>>, ByCreation>;

/// Whether a pass around the running one has yet to run this node: `recompute` is a pass inside of a pass.
bool in_flight(const Node& node) {
  return !node.freed && (!node.leaf || node.pending > 0) &&
         std::ranges::find(outer_passes, node.pass) != outer_passes.end();
}

/// Counts, for every node reachable from the roots, how many gradients it has to wait for.
void count_consumers(const std::vector<Ref<Node>>& roots, uint64_t pass) {
  std::vector<Node*> stack;
  auto visit = [&](Node* node) {
    if (node->pass == pass) return;
    WEFT_CHECK(!node->freed, node->name(),
               "backward came here a second time, but what the rule needs was freed; pass retain_graph the first time");
    if (!outer_passes.empty() && in_flight(*node)) [[unlikely]] {
      WEFT_CHECK(
          node->leaf, node->name(),
          "a backward pass inside of another one came to an op that the outer one has yet to run; what recompute's "
          "function takes from outside must be its argument or a leaf");
      return;  // its gradient gathers on, and the outer pass runs it
    }
    node->pass = pass;
    node->pending = 0;
    for (size_t i = 0; i < node->outputs.size(); ++i) node->outputs[i].grad = Tensor();  // left by a pass that threw
    stack.push_back(node);
  };
  for (const Ref<Node>& root : roots) visit(root.get());
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      if (Node* input = node->inputs[i].node.get()) {
        visit(input);
        if (input->pass == pass) ++input->pending;
      }
    }
  }
}

/// Adds a gradient to what has gathered at an output.
void gather(const Node& from, size_t input, const Edge& edge, Tensor grad) {
  Node::Output& output = edge.node->outputs[edge.output];
  WEFT_CHECK(grad.sizes() == output.sizes && grad.dtype() == output.dtype, from.name(),
             "the gradient rule gave {} {} for input {}, which is {} {}", name(grad.dtype()), str(grad.sizes()), input,
             name(output.dtype), str(output.sizes));
  if (!output.grad.defined()) {
    output.grad = std::move(grad);
  } else if (output.grad.unique() && !raw::overlaps_itself(output.grad)) {
    kernels::add(output.grad, grad, output.grad);
  } else {
    output.grad = output.grad + grad;
  }
}

void run_hooks(Node& node) {
  Node::Output& output = node.outputs[0];
  if (!output.grad.defined()) return;
  for (const auto& hook : node.hooks) {
    Tensor replaced = hook(output.grad);
    if (!replaced.defined()) continue;
    WEFT_CHECK(replaced.sizes() == output.sizes && replaced.dtype() == output.dtype, "hook",
               "the gradient of {} is {} {}, the hook gave {} {}", node.name(), name(output.dtype), str(output.sizes),
               name(replaced.dtype()), str(replaced.sizes()));
    output.grad = std::move(replaced);
  }
}

/// Runs one node and hands its gradients on; nodes that have nothing left to wait for become ready.
void run(Node& node, bool retain_graph, ReadyQueue& ready) {
  const Scope scope(node.scope());
  running_rule = node.name();
  bool any = node.leaf && static_cast<LeafNode&>(node).rows_came;
  for (size_t i = 0; i < node.outputs.size(); ++i) any |= node.outputs[i].grad.defined();
  Grads grads;
  if (any) {
    if (!node.hooks.empty()) run_hooks(node);
    grads = node.apply(node.outputs);
    WEFT_CHECK(node.leaf || grads.size() == node.inputs.size(), node.name(),
               "the gradient rule gave {} gradients for {} inputs", grads.size(), node.inputs.size());
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) node.outputs[i].grad = Tensor();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Edge& edge = node.inputs[i];
    if (!edge.node) continue;
    if (any && grads[i].defined()) {
      if (AnomalyMode::enabled()) [[unlikely]]
        detail::check_finite("gradient", node.name(), grads[i]);
      gather(node, i, edge, std::move(grads[i]));
    }
    if (edge.node->pass != node.pass || --edge.node->pending > 0) continue;
    if (edge.node->leaf)
      run(*edge.node, retain_graph, ready);  // at once: its gradient can be sent off while backward goes on
    else
      ready.push(edge.node);
  }
  if (!retain_graph && !node.leaf) {
    node.free_saved();
    node.inputs.clear();
    node.freed = true;
  }
}

/// Callbacks registered while a pass runs; a pass inside a pass (recompute) adds to the outer one's.
class EndCallbacks {
 public:
  EndCallbacks() {
    if (!end_callbacks) end_callbacks = &own_;
  }
  ~EndCallbacks() {
    if (end_callbacks == &own_) end_callbacks = nullptr;
  }
  void run() {
    if (end_callbacks != &own_) return;
    for (size_t i = 0; i < own_.size(); ++i) own_[i]();
  }

 private:
  std::vector<std::function<void()>> own_;
};

/// What a pass notes of the thread that runs it, put back at its end and where it throws.
class PassScope {
 public:
  explicit PassScope(uint64_t pass) : rule_(running_rule) { outer_passes.push_back(pass); }
  ~PassScope() {
    running_rule = rule_;
    outer_passes.pop_back();
  }
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;

 private:
  const char* rule_;
};

}  // namespace

void SavedTensor::fail_changed() const {
  fail(running_rule ? running_rule : "saved tensor",
       fmt::format("a {} tensor that its gradient needs was changed in place after the forward ({} writes since)",
                   str(value_.sizes()), value_.storage()->version() - version_));
}

void backward(const std::vector<Tensor>& roots, const std::vector<Tensor>& gradients, bool retain_graph) {
  WEFT_CHECK(gradients.empty() || gradients.size() == roots.size(), "backward", "{} gradients for {} tensors",
             gradients.size(), roots.size());
  const NoGrad no_grad;
  const Autocast no_autocast;  // rules run in the dtypes of their forward
  const FlushDenormals flush;
  EndCallbacks callbacks;
  std::vector<Ref<Node>> nodes;
  for (const Tensor& root : roots) {
    Node* node = node_of(root);
    WEFT_CHECK(node, "backward",
               "the tensor has no history: nothing it was made from requires a gradient, or NoGrad was on");
    nodes.emplace_back(node);
  }
  const uint64_t pass = next_pass.fetch_add(1, std::memory_order_relaxed);
  count_consumers(nodes, pass);
  ReadyQueue ready;
  for (size_t i = 0; i < roots.size(); ++i) {
    const bool given = !gradients.empty() && gradients[i].defined();
    WEFT_CHECK(given || roots[i].numel() == 1, "backward", "a tensor of shape {} needs the gradient to start from",
               str(roots[i].sizes()));
    WEFT_CHECK(!given || (gradients[i].sizes() == roots[i].sizes() && gradients[i].dtype() == roots[i].dtype() &&
                          gradients[i].device() == roots[i].device()),
               "backward", "the tensor is {} {} on {}, the gradient to start from {} {} on {}", name(roots[i].dtype()),
               str(roots[i].sizes()), name(roots[i].device()), name(gradients[i].dtype()), str(gradients[i].sizes()),
               name(gradients[i].device()));
    Edge edge{nodes[i], roots[i].impl().grad_output};
    gather(*nodes[i], 0, edge, given ? raw::detach(gradients[i]) : ones_like(roots[i]));
    bool first = true;
    for (size_t k = 0; k < i; ++k) first = first && !(nodes[k] == nodes[i]);
    if (first && nodes[i]->pass == pass && nodes[i]->pending == 0) ready.push(nodes[i]);
  }
  nodes.clear();
  {
    const PassScope scope(pass);
    while (!ready.empty()) {
      const Ref<Node> node = ready.top();
      ready.pop();
      run(*node, retain_graph, ready);
    }
  }
  callbacks.run();
}

void Tensor::backward() const { weft::backward({*this}); }

void Tensor::backward(const BackwardOptions& options) const {
  WEFT_CHECK(!options.create_graph, "backward", "second derivatives are not supported: create_graph must stay false");
  weft::backward({*this}, {options.gradient}, options.retain_graph);
}

void register_hook(const Tensor& x, std::function<Tensor(const Tensor&)> hook) {
  Node* node = node_of(x);
  WEFT_CHECK(node && x.impl().grad_output == 0, "hook", "the tensor requires no gradient");
  node->hooks.push_back(std::move(hook));
}

void register_ready_hook(const Tensor& x, std::function<void(Tensor&)> hook) {
  Node* node = node_of(x);
  WEFT_CHECK(node && node->leaf, "hook", "the tensor is not a leaf that requires a gradient");
  static_cast<LeafNode*>(node)->ready_hooks.push_back(std::move(hook));
}

void after_backward(std::function<void()> f) {
  WEFT_CHECK(end_callbacks, "after_backward", "no backward pass is running on this thread");
  end_callbacks->push_back(std::move(f));
}

}  // namespace weft
