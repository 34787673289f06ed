// Weights from files of other programs, by name.
#include "models/pretrained.h"

#include <algorithm>
#include <map>

namespace weft::models {

void load_by_name(nn::Module& model, const std::vector<Named>& tensors, const NameRules& rules) {
  std::map<std::string, DType> wanted;
  for (const Named& own : model.state_dict()) wanted[own.name] = own.value.dtype();
  std::vector<Named> state;
  for (const Named& tensor : tensors) {
    std::string name = tensor.name;
    for (const std::string& prefix : rules.prefixes)
      if (name.starts_with(prefix)) name = name.substr(prefix.size());
    if (std::ranges::any_of(rules.ignored_prefixes, [&](const std::string& p) { return name.starts_with(p); }) ||
        std::ranges::any_of(rules.ignored_suffixes, [&](const std::string& s) { return name.ends_with(s); }))
      continue;
    for (const auto& [from, to] : rules.renamed_suffixes)
      if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
    const auto own = wanted.find(name);
    const bool converts = own != wanted.end() && is_floating(own->second) && is_floating(tensor.value.dtype());
    state.push_back({name, converts ? tensor.value.to(own->second) : tensor.value});
  }
  model.load_state_dict(state);
}

}  // namespace weft::models
