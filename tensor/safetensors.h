// Tensors in a file, in the public safetensors format: an 8-byte little-endian header length, a JSON header with each
// tensor's dtype, shape and place, then the values. Other frameworks read and write it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

using Metadata = std::map<std::string, std::string>;

/// Writes the tensors, values in row-major order whatever their strides. Equal values under equal names give equal
/// bytes, in whatever order they come. The file is replaced as a whole or not at all (tensor/atomic_file.h).
void save(const std::string& path, const std::vector<Named>& tensors, const Metadata& metadata = {});

/// The tensors of a file, on the CPU, sorted by name. Throws, naming the fault, before memory is taken for values.
std::vector<Named> load(const std::string& path);

/// The strings that `save` was given beside the tensors.
Metadata load_metadata(const std::string& path);

}  // namespace weft
