// Weights from files of other programs, by name.
#pragma once

#include <string>
#include <vector>

#include "nn/module.h"

namespace weft::models {

/// How the names of a file become those of a model.
struct NameRules {
  std::vector<std::string> prefixes = {};  ///< left out where a name begins with one
  std::vector<std::string> ignored_prefixes =
      {};  ///< of names (without a prefix of the above) that are no weights here
  std::vector<std::string> ignored_suffixes = {};
  std::vector<std::pair<std::string, std::string>> renamed_suffixes = {};
};

/// Loads tensors by name, floating ones in the model's dtypes. What is missing, unexpected or of another shape makes
/// one Error that lists all of it, and nothing is changed.
void load_by_name(nn::Module& model, const std::vector<Named>& tensors, const NameRules& rules);

}  // namespace weft::models
