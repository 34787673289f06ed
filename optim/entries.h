// What is read of a state dictionary, and what is wrong with it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace weft::optim {

/// Entries by name, each taken once; what does not fit is collected.
class Entries {
 public:
  explicit Entries(const std::vector<Named>& state) {
    for (const Named& entry : state) {
      if (!entry.value.defined())
        problems.push_back(fmt::format("{} is undefined", entry.name));
      else if (!entries_.emplace(entry.name, entry.value).second)
        problems.push_back(fmt::format("{} is there twice", entry.name));
    }
  }

  /// Undefined where it is missing or not as wanted.
  Tensor take(const std::string& name, DType dtype, const Shape& sizes) {
    auto node = entries_.extract(name);
    if (node.empty()) {
      problems.push_back(fmt::format("{} is missing", name));
      return {};
    }
    const Tensor& x = node.mapped();
    if (x.dtype() == dtype && x.sizes() == sizes) return x;
    problems.push_back(fmt::format("{} is {} {}, not {} {}", name, weft::name(x.dtype()), str(x.sizes()),
                                   weft::name(dtype), str(sizes)));
    return {};
  }

  void drop(const std::string& name) { entries_.erase(name); }

  void no_more() {
    for (const auto& [name, value] : entries_) problems.push_back(fmt::format("{} is unexpected", name));
  }

  std::vector<std::string> problems;

 private:
  std::map<std::string, Tensor> entries_;
};

}  // namespace weft::optim
