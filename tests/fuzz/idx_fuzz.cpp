// Any bytes, read as plain IDX and as gzip: an error or a tensor, nothing else.
#include <cstdint>
#include <cstdio>
#include <string>

#include "data/idx.h"
#include "tensor/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  for (const bool gzip : {false, true}) {
    std::FILE* file = fmemopen(const_cast<uint8_t*>(bytes), size, "rb");
    try {
      weft::data::read_idx(file, static_cast<int64_t>(size), "input", gzip);
    } catch (const weft::Error&) {
    }
    std::fclose(file);
  }
  return 0;
}
