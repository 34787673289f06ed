// Entries of a table by name, for command lines.
#pragma once

#include <fmt/ranges.h>

#include <string_view>
#include <vector>

#include "tensor/error.h"

namespace weft {

/// The entry whose `name` it is. Throws for an unknown one, listing those there are: "[op] no `kind` is called 'x'; …".
template <class Entry>
const Entry& find_named(const std::vector<Entry>& table, std::string_view name, const char* op, const char* kind) {
  std::vector<std::string_view> names;
  for (const Entry& entry : table) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail(op, fmt::format("no {} is called '{}'; there are {}", kind, name, fmt::join(names, ", ")));
}

}  // namespace weft
