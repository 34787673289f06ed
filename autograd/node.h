// The tape: one Node for each recorded op, one LeafNode for each tensor whose gradient is wanted.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "autograd/row_gradient.h"
#include "tensor/tensor.h"

namespace weft {

/// A list whose first N items need no heap.
template <class T, size_t N>
class FewOf {
 public:
  FewOf() = default;
  FewOf(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  T& operator[](size_t i) { return i < N ? few_[i] : more_[i - N]; }
  const T& operator[](size_t i) const { return i < N ? few_[i] : more_[i - N]; }
  void push_back(T item) {
    if (count_ < N)
      few_[count_] = std::move(item);
    else
      more_.push_back(std::move(item));
    ++count_;
  }
  void clear() { *this = FewOf(); }

 private:
  std::array<T, N> few_{};
  std::vector<T> more_;
  size_t count_ = 0;
};

/// What a gradient rule returns: one gradient for each input, undefined where there is none.
using Grads = FewOf<Tensor, 3>;

class Node;

/// Where an input of an op came from; no node where its gradient is not wanted.
struct Edge {
  Ref<Node> node;
  uint32_t output = 0;
};

class Node : public RefCounted {
 public:
  /// What is known of one output, and its gradient as it gathers during backward.
  struct Output {
    Shape sizes;
    DType dtype = DType::f32;
    Device device;
    Tensor grad;
  };

  explicit Node(const char* name);

  const char* name() const { return name_; }
  /// Rises with every node of the process: an op's number is above those of its inputs.
  uint64_t sequence() const { return sequence_; }
  /// The module path it was recorded in, an id of Scope.
  uint32_t scope() const { return scope_; }

  /// Gradients of the inputs from those of the outputs.
  virtual Grads apply(FewOf<Output, 1>& outputs) = 0;
  /// Drops what the rule saved.
  virtual void free_saved() = 0;

  FewOf<Edge, 3> inputs;
  FewOf<Output, 1> outputs;
  /// Each may replace the gradient of output 0 before the rule sees it.
  std::vector<std::function<Tensor(const Tensor&)>> hooks;

  // The engine's notes.
  bool leaf = false;
  bool freed = false;
  uint64_t pass = 0;
  int64_t pending = 0;

 protected:
  void dispose() override;

 private:
  const char* name_;
  uint64_t sequence_;
  uint32_t scope_;
};

/// Collects the gradient of a leaf. It does not hold the leaf's values, so a dropped tensor is freed at once.
class LeafNode : public Node {
 public:
  explicit LeafNode(const Tensor& leaf);
  Grads apply(FewOf<Output, 1>& outputs) override;
  void free_saved() override {}
  /// Adds rows to the row gradient. The node runs when its pass comes to it, as for a whole gradient.
  void add_rows(const RowGradient& more);

  Tensor grad;
  RowGradient rows;
  bool rows_came = false;  // in the running pass
  /// Called after the gradient of one backward pass has been added; with an undefined one where rows came alone.
  std::vector<std::function<void(Tensor& grad)>> ready_hooks;

 private:
  void add_whole(Tensor incoming);
  void merge_rows();
};

/// The node of a tensor, or none.
inline Node* node_of(const Tensor& x) { return static_cast<Node*>(x.impl().grad_node.get()); }

}  // namespace weft
