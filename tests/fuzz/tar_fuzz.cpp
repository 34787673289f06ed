// Any bytes, read as a tar archive, gzip or not: an error or files that are no longer than the input allows, nothing
// else.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "data/tar.h"
#include "tensor/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size == 0) return 0;
  std::FILE* file = fmemopen(const_cast<uint8_t*>(bytes), size, "rb");
  try {
    weft::data::TarReader archive(file, "input");
    for (bool read = true; const auto entry = archive.next(); read = !read)
      if (read && archive.read(1 << 20).size() != static_cast<size_t>(entry->size)) std::abort();
  } catch (const weft::Error&) {
  }
  std::fclose(file);
  return 0;
}
