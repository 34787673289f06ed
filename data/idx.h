// IDX files, the format of MNIST: big-endian header (two zero bytes, type, number of dimensions, sizes), then the
// values.
#pragma once

#include <cstdio>
#include <string>

#include "tensor/tensor.h"

namespace weft::data {

/// The values of an IDX file of bytes, u8, in the sizes of its header; a name that ends in ".gz" means gzip. Throws,
/// before it takes memory, where the header promises more than the file can hold, and names each other kind of damage.
Tensor read_idx(const std::string& path);

/// The same from an open file of `file_bytes` bytes; `name` is for messages.
Tensor read_idx(std::FILE* file, int64_t file_bytes, const std::string& name, bool gzip);

}  // namespace weft::data
