// Names and places that only the symbol table of the running file knows: the static arrays of a function, and which
// function an address is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace simt {

/// The `__shared__` arrays of one function.
struct SharedArrays {
  struct Array {
    void* begin;
    size_t bytes;
  };
  std::vector<Array> arrays;
  uint64_t filled_for = 0;  ///< the number of the block that found them filled
};

/// The arrays beside a mark, the same object for all marks of a function; none where the file has no symbol table.
SharedArrays& arrays_beside(const void* mark);
/// As in the source; "kernel" when unknown.
std::string function_name(const void* address);

}  // namespace simt
