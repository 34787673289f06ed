// Modules made of modules, and the small ones between them.
#pragma once

#include <functional>

#include "autograd/ops/elementwise.h"
#include "nn/module.h"

namespace weft::nn {

/// Calls its children in order.
///   nn::Sequential net;
///   net.add<nn::Linear>("fc1", {.in = 784, .out = 128, .activation = Activation::relu});
///   net.add<nn::Linear>("fc2", {.in = 128, .out = 10});
/// or, numbered "0", "1", …:
///   nn::Sequential net(nn::make<nn::Linear>({.in = 784, .out = 128}), nn::make<nn::ReLU>());
/// A struct may derive from it: its members are children, and it needs no forward of its own.
class Sequential : public Module {
 public:
  Sequential() = default;
  template <std::derived_from<Module>... T>
  explicit Sequential(std::unique_ptr<T>... modules) {
    (add(next_name(), std::move(modules)), ...);
  }
  using Module::add;
  /// A child from a function: `net.add("flatten", [](const Tensor& x) { return x.flatten(1); })`.
  Module& add(std::string_view name, std::function<Tensor(const Tensor&)> f);

  Tensor forward(const Tensor& x) override;
  std::vector<Module*> layers() override;

 private:
  std::string next_name() const { return std::to_string(children().size()); }
};

/// y = x + f(x), f being its children in order (He et al., "Deep residual learning for image recognition", CVPR 2016).
class Residual : public Sequential {
 public:
  using Sequential::Sequential;
  Tensor forward(const Tensor& x) override { return x + Sequential::forward(x); }
  /// One part: the sum needs the input.
  std::vector<Module*> layers() override { return {this}; }
};

/// Dimensions first…last as one; by default all but the batch.
class Flatten : public Module {
 public:
  struct Options {
    int64_t first = 1, last = -1;
  };
  Flatten() : Flatten(Options{}) {}
  explicit Flatten(Options options) : options(options) {}
  Tensor forward(const Tensor& x) override { return x.flatten(options.first, options.last); }

  const Options options;
};

/// Any function as a module.
class Function : public Module {
 public:
  explicit Function(std::function<Tensor(const Tensor&)> f) : f_(std::move(f)) {}
  Tensor forward(const Tensor& x) override { return f_(x); }

 private:
  std::function<Tensor(const Tensor&)> f_;
};

}  // namespace weft::nn
