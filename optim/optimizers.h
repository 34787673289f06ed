// Optimizers by name, for command lines.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "optim/optimizer.h"

namespace weft::optim {

struct Entry {
  std::string_view name;
  double usual_lr;  ///< a good highest rate of a one-cycle schedule
  std::unique_ptr<Optimizer> (*make)(std::vector<Named> parameters);
};

/// All optimizers, with their usual options; sgd has a momentum of 0.9.
const std::vector<Entry>& table();
/// The entry of a name; throws for an unknown one, listing those there are.
const Entry& find(std::string_view name);

}  // namespace weft::optim
