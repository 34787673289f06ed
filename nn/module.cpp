// The tree of modules: names and paths, lists of tensors, conversion.
#include "nn/module.h"

#include <cxxabi.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "tensor/view.h"

namespace weft::nn {
namespace {

thread_local ForwardObserver* observer = nullptr;

/// A demangled type without the namespaces, functions and classes around it.
std::string unqualified(std::string_view full) {
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < full.size(); ++i) {
    const char c = full[i];
    if (c == '<' || c == '(' || c == '{' || c == '[') ++depth;
    if (c == '>' || c == ')' || c == '}' || c == ']') --depth;
    if (depth == 0 && c == ':') start = i + 1;
  }
  return std::string(full.substr(start));
}

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

/// x becomes `y` in place: handles, hooks and the leaf stay the same.
void become(const Tensor& x, const Tensor& y) {
  Tensor::Impl& to = x.impl();
  const Tensor::Impl& from = y.impl();
  to.storage = from.storage;
  to.offset = from.offset;
  to.strides = from.strides;
  to.dtype = from.dtype;
  to.view = false;
  if (Node* node = node_of(x)) {
    node->outputs[0].dtype = from.dtype;
    node->outputs[0].device = from.storage->device();
  }
}

}  // namespace

ForwardObserver::ForwardObserver() : outer_(observer) { observer = this; }
ForwardObserver::~ForwardObserver() { observer = outer_; }

Tensor Module::forward(const Tensor&) { fail("forward", fmt::format("{} has no forward of one tensor", type())); }

Tensor Module::operator()(const Tensor& x) {
  Scope scope(scope_id());
  if (!observer) [[likely]]
    return forward(x);
  ForwardObserver& watching = *observer;
  watching.before(*this, x);
  Tensor y = forward(x);
  watching.after(*this, x, y);
  return y;
}

std::string Module::type() const {
  const char* mangled = typeid(*this).name();
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> full(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return unqualified(status == 0 ? full.get() : mangled);
}

std::string Module::path() const { return parent_ ? parent_->path() + "." + name_ : type(); }

uint32_t Module::scope_id() const {
  uint32_t id = scope_.load(std::memory_order_relaxed);
  if (id == 0) [[unlikely]] {
    id = Scope::intern(path());
    scope_.store(id, std::memory_order_relaxed);
  }
  return id;
}

void Module::check_name(std::string_view name) const {
  WEFT_CHECK(!name.empty() && name.find('.') == name.npos, "module", "'{}' cannot be a name: it is empty or has a dot",
             name);
  const auto taken = [name](const auto& one) { return one.name == name; };
  for (const auto* tensors : {&parameters_, &buffers_})
    for (const Named& one : *tensors) WEFT_CHECK(!taken(one), "module", "there is a tensor '{}' already", name);
  for (const Child& one : children_) WEFT_CHECK(!taken(one), "module", "there is a child '{}' already", name);
}

uint32_t Module::building(std::string_view name) {
  // The type of the root is not known while it is being built.
  const std::string& outer = Scope::path(Scope::current());
  return Scope::intern(outer.empty() ? std::string(name) : fmt::format("{}.{}", outer, name));
}

Module& Module::attach(std::string_view name, std::unique_ptr<Module> child) {
  check_name(name);
  WEFT_CHECK(child, "module", "the child '{}' is null", name);
  child->name_ = name;
  child->parent_ = this;
  child->train(training_);
  child->visit([](Module& m) { m.scope_.store(0, std::memory_order_relaxed); });
  children_.push_back({std::string(name), std::move(child)});
  return *children_.back().module;
}

Tensor& Module::parameter(std::string_view name, Tensor value) {
  check_name(name);
  if (value.defined()) value.requires_grad_();
  return parameters_.emplace_back(std::string(name), std::move(value)).value;
}

Tensor& Module::buffer(std::string_view name, Tensor value) {
  check_name(name);
  return buffers_.emplace_back(std::string(name), std::move(value)).value;
}

template <class F>
void Module::each_tensor(const std::string& prefix, const F& f) const {
  for (const Named& own : parameters_)
    if (own.value.defined()) f(join(prefix, own.name), own.value, true);
  for (const Named& own : buffers_)
    if (own.value.defined()) f(join(prefix, own.name), own.value, false);
  for (const Child& child : children_) child.module->each_tensor(join(prefix, child.name), f);
}

std::vector<Named> Module::distinct(bool with_parameters, bool with_buffers) const {
  std::vector<Named> list;
  std::unordered_set<const Tensor::Impl*> seen;
  each_tensor("", [&](const std::string& name, const Tensor& x, bool trained) {
    if ((trained ? with_parameters : with_buffers) && seen.insert(&x.impl()).second) list.push_back({name, x});
  });
  return list;
}

std::vector<Named> Module::parameters() const { return distinct(true, false); }
std::vector<Named> Module::buffers() const { return distinct(false, true); }

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Named& p : parameters()) count += p.value.numel();
  return count;
}

std::vector<Named> Module::state_dict() const {
  std::vector<Named> list = distinct(true, true);
  for (Named& one : list) one.value = one.value.detach();
  return list;
}

void Module::load_state_dict(const std::vector<Named>& state) {
  Scope scope(scope_id());
  std::unordered_map<std::string_view, const Tensor*> given;
  std::vector<std::string> faults;
  for (const Named& one : state)
    if (!given.emplace(one.name, &one.value).second) faults.push_back(fmt::format("{} is given twice", one.name));

  struct Own {
    std::string name;  // the first one
    Tensor value;
    const Tensor* source = nullptr;
  };
  std::vector<Own> own;
  std::unordered_map<const Tensor::Impl*, size_t> index;
  std::unordered_set<const Storage*> memory;
  std::unordered_set<std::string> names;
  each_tensor("", [&](const std::string& name, const Tensor& x, bool) {
    const auto [place, first] = index.emplace(&x.impl(), own.size());
    if (first) own.push_back({name, x});
    memory.insert(x.storage().get());
    names.insert(name);
    const auto found = given.find(name);
    if (found == given.end()) return;
    const Tensor& source = *found->second;
    if (!source.defined())
      faults.push_back(fmt::format("{} is given without a value", name));
    else if (source.sizes() != x.sizes())
      faults.push_back(fmt::format("{} is {} here, {} was given", name, str(x.sizes()), str(source.sizes())));
    else if (source.dtype() != x.dtype())
      faults.push_back(
          fmt::format("{} is {} here, {} was given", name, weft::name(x.dtype()), weft::name(source.dtype())));
    if (!own[place->second].source) own[place->second].source = &source;
  });
  for (const Own& one : own)
    if (!one.source) faults.push_back(fmt::format("{} is missing", one.name));
  for (const Named& one : state)
    if (!names.contains(one.name))
      faults.push_back(fmt::format("{} is unexpected: the model has no such tensor", one.name));
  WEFT_CHECK(faults.empty(), "load_state_dict", "{} of the names given do not fit, nothing was loaded:\n  {}",
             faults.size(), fmt::join(faults, "\n  "));

  NoGrad no_grad;
  std::vector<Tensor> sources;  // a value that lies in this module's own memory is copied before anything is written
  for (const Own& one : own)
    sources.push_back(memory.contains(one.source->storage().get()) ? raw::clone(*one.source) : *one.source);
  for (size_t i = 0; i < own.size(); ++i) own[i].value.copy_(sources[i].to(own[i].value.device()));
}

void Module::convert(const std::function<Tensor(const Module& owner, const Tensor& x, bool trained)>& f) {
  NoGrad no_grad;
  std::unordered_set<const Tensor::Impl*> seen;
  visit([&](Module& m) {
    for (const auto* list : {&m.parameters_, &m.buffers_})
      for (const Named& own : *list) {
        if (!own.value.defined() || !seen.insert(&own.value.impl()).second) continue;
        Tensor x = own.value;
        const bool trained = list == &m.parameters_;
        const Tensor gradient = x.grad();
        if (const Tensor y = f(m, x, trained); y.ref().get() != x.ref().get()) become(x, y);
        if (gradient.defined()) x.set_grad(f(m, gradient, trained));
      }
  });
}

Module& Module::to(Device device) {
  convert([device](const Module&, const Tensor& x, bool) { return x.to(device); });
  return *this;
}

Module& Module::to(DType dtype) {
  WEFT_CHECK(is_floating(dtype), "to", "a module wants a floating dtype, got {}", weft::name(dtype));
  convert([dtype](const Module& owner, const Tensor& x, bool trained) {
    return is_floating(x.dtype()) ? x.to(trained ? dtype : owner.buffer_dtype(dtype)) : x;
  });
  return *this;
}

Evaluation::Evaluation(Module& module) {
  module.visit([this](Module& m) { before_.emplace_back(&m, m.training_); });
  module.eval();
}

Evaluation::~Evaluation() {
  for (auto [module, training] : before_) module->training_ = training;
}

Module& Module::train(bool on) {
  visit([on](Module& m) { m.training_ = on; });
  return *this;
}

void Module::zero_grad() {
  for (const Named& p : parameters())
    if (p.value.requires_grad()) Tensor(p.value).set_grad({});
}

void Module::reset_parameters() {
  NoGrad no_grad;
  visit([](Module& m) { m.reset_own_parameters(); });
}

void Module::init(const std::function<void(const std::string& name, Tensor& value)>& f) {
  NoGrad no_grad;
  for (Named& p : parameters()) f(p.name, p.value);
  visit([](Module& m) { m.after_init(); });
}

void Module::visit(const std::function<void(Module&)>& f) {
  f(*this);
  for (const Child& child : children_) child.module->visit(f);
}

}  // namespace weft::nn
