// Modules: a child, parameter or buffer is declared, named, built and owned in one line of its parent, without macros:
//   struct Net : nn::Module {
//     nn::Linear& fc = add<nn::Linear>("fc", {.in = 784, .out = 10});
//     Tensor& scale = parameter("scale", ones({10}));
//     Tensor forward(const Tensor& x) override { return fc(x) * scale; }
//   };
#pragma once

#include <atomic>
#include <concepts>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "nn/summary.h"
#include "tensor/tensor.h"

namespace weft::nn {

class Module;

/// Watches every module call of this thread while it lives: summaries, profiles and monitors are observers. They nest;
/// the innermost is told.
class ForwardObserver {
 public:
  ForwardObserver();
  virtual ~ForwardObserver();
  ForwardObserver(const ForwardObserver&) = delete;
  ForwardObserver& operator=(const ForwardObserver&) = delete;
  virtual void before(Module& module, const Tensor& x) = 0;
  /// Not called where the forward throws.
  virtual void after(Module& module, const Tensor& x, const Tensor& y) = 0;

 private:
  ForwardObserver* outer_;
};

class Module {
 public:
  struct Child {
    std::string name;
    std::unique_ptr<Module> module;
  };

  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// What the module computes. Modules of other signatures leave it and enter `Scope scope(scope_id());` themselves.
  virtual Tensor forward(const Tensor& x);
  /// Calls `forward` inside the Scope of this module's path, so that errors, anomaly reports and memory owners name it.
  Tensor operator()(const Tensor& x);

  /// Own parameters, then those of the children in order of declaration, with dotted names ("conv1.weight"). A tensor
  /// that several modules share comes once, under its first name. The handles are the module's own.
  std::vector<Named> parameters() const;
  /// State that is not trained (running statistics), named and shared as parameters are.
  std::vector<Named> buffers() const;
  /// Elements of all parameters.
  int64_t parameter_count() const;
  /// Parameters and buffers, outside of the graph, in the module's own memory: later training changes them.
  std::vector<Named> state_dict() const;
  /// Copies values in by name. Missing, unexpected and doubled names and other shapes or dtypes make one Error that
  /// lists them all, and nothing is changed. A shared tensor may come under any one of its names, or under several.
  void load_state_dict(const std::vector<Named>& state);

  /// Moves parameters, buffers and gradients; tensors keep their identity, so optimizers and hooks stay valid.
  Module& to(Device device);
  /// Converts the floating ones.
  Module& to(DType dtype);
  /// Switches what differs between training and evaluation (dropout, batch norm), here and in all children.
  Module& train(bool on = true);
  Module& eval() { return train(false); }
  bool training() const { return training_; }
  /// Drops all gradients.
  void zero_grad();
  /// Draws fresh parameters by each layer's own default.
  void reset_parameters();
  /// Calls f with each parameter and its name, to initialise it in place; then layers restore what must hold (the
  /// padding row of an Embedding is 0 again).
  void init(const std::function<void(const std::string& name, Tensor& value)>& f);

  /// Parts which, called in order, are this module's forward: what a pipeline may cut between. A Sequential has one for
  /// each child; other modules are one part unless they override this.
  virtual std::vector<Module*> layers() { return {this}; }
  const std::vector<Child>& children() const { return children_; }
  /// Calls f with this module and all below it, parents first.
  void visit(const std::function<void(Module&)>& f);

  /// A table of layers, output shapes, parameters and multiply-adds, from one forward of zeros without gradients in
  /// evaluation mode; `input` has the sizes of a batch. A shape error carries the table up to the layer that failed.
  Summary summary(const Shape& input);
  /// The same with a given input (token ids).
  Summary summary(const Tensor& input);

  /// The module's type without namespaces: "Conv2d".
  std::string type() const;
  /// Its name in its parent; empty for a root.
  const std::string& name() const { return name_; }
  /// "MnistNet.conv2": the root's type, then names.
  std::string path() const;
  /// The path as an id of Scope, looked up once.
  uint32_t scope_id() const;

 protected:
  /// Builds a child from its options: `add<nn::Linear>("fc", {.in = 4, .out = 2})`.
  template <class T>
  T& add(std::string_view name, typename T::Options options) {
    return emplace<T>(name, std::move(options));
  }
  /// Builds a child from any arguments.
  template <class T, class... Args>
  requires std::constructible_from<T, Args...> T& add(std::string_view name, Args&&... args) {
    return emplace<T>(name, std::forward<Args>(args)...);
  }
  /// Takes over a module that was built before.
  template <std::derived_from<Module> T>
  T& add(std::string_view name, std::unique_ptr<T> module) {
    return static_cast<T&>(attach(name, std::move(module)));
  }
  /// A tensor to be trained. An undefined one keeps its place but is left out of lists (a layer without bias).
  Tensor& parameter(std::string_view name, Tensor value);
  /// A tensor that belongs to the state but is not trained.
  Tensor& buffer(std::string_view name, Tensor value);
  /// Draws this module's own parameters again.
  virtual void reset_own_parameters() {}
  /// What this module's floating buffers become where its parameters become `parameters`.
  virtual DType buffer_dtype(DType parameters) const { return parameters; }
  /// Restores what must hold of this module's own parameters after `init`.
  virtual void after_init() {}

 private:
  friend class Evaluation;
  template <class T, class... Args>
  T& emplace(std::string_view name, Args&&... args) {
    check_name(name);
    Scope scope(building(name));
    return static_cast<T&>(attach(name, std::make_unique<T>(std::forward<Args>(args)...)));
  }
  void check_name(std::string_view name) const;
  static uint32_t building(std::string_view name);
  Module& attach(std::string_view name, std::unique_ptr<Module> child);
  /// Tensors of this module and all below it, a shared one once.
  std::vector<Named> distinct(bool with_parameters, bool with_buffers) const;
  template <class F>
  void each_tensor(const std::string& prefix, const F& f) const;
  void convert(const std::function<Tensor(const Module& owner, const Tensor& x, bool trained)>& f);

  std::deque<Named> parameters_;  // deques: references stay valid while they grow
  std::deque<Named> buffers_;
  std::vector<Child> children_;
  std::string name_;
  Module* parent_ = nullptr;
  bool training_ = true;
  mutable std::atomic<uint32_t> scope_{0};  // 0: not looked up yet
};

/// While one lives, a module and all below it are in evaluation mode; then each has the mode that it had.
class Evaluation {
 public:
  explicit Evaluation(Module& module);
  ~Evaluation();
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> before_;
};

/// A module for a Sequential: `nn::make<nn::Linear>({.in = 4, .out = 2})`.
template <class T>
std::unique_ptr<T> make(typename T::Options options) {
  return std::make_unique<T>(std::move(options));
}
template <class T, class... Args>
requires std::constructible_from<T, Args...> std::unique_ptr<T> make(Args&&... args) {
  return std::make_unique<T>(std::forward<Args>(args)...);
}

}  // namespace weft::nn
