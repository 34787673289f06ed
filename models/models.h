// Models by name, for command lines.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"

namespace weft::models {

struct Entry {
  std::string_view name;
  std::string_view about;
  Shape input;  ///< of one sample
  std::unique_ptr<nn::Module> (*make)();
};

/// All models, each for 28×28 images of one channel and 10 classes.
const std::vector<Entry>& table();
/// The entry of a name; throws for an unknown one, listing those there are.
const Entry& find(std::string_view name);
/// A new model by its name.
std::unique_ptr<nn::Module> make(std::string_view name);

}  // namespace weft::models
