// The table that Module::summary returns.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace weft::nn {

struct Summary {
  struct Row {
    std::string name;   ///< dotted, without the root; "" for the root itself
    std::string type;   ///< "Conv2d"
    int64_t depth = 0;  ///< below the root
    Shape output = {};
    int64_t parameters = 0;     ///< of the layer itself; 0 where they were counted in a row above
    int64_t multiply_adds = 0;  ///< of the layer itself, without its children
    bool shared = false;        ///< its parameters were counted in a row above
    bool called = true;         ///< false for a layer that the forward does not use
    bool failed = false;        ///< its forward threw
  };
  std::string model;  ///< type of the root
  Shape input;
  std::vector<Row> rows = {};
  int64_t parameters = 0;
  int64_t multiply_adds = 0;

  /// The row of a layer; throws where there is none.
  const Row& operator[](const std::string& name) const;
  /// The table as text.
  std::string str() const;
};

std::ostream& operator<<(std::ostream& out, const Summary& summary);

}  // namespace weft::nn
