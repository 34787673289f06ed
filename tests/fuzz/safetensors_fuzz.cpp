// Any bytes, read as a safetensors file: an error or tensors, nothing else.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tensor/error.h"
#include "tensor/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || write(file, bytes, size) != static_cast<ssize_t>(size)) return 0;
  try {
    weft::load("/proc/self/fd/" + std::to_string(file));
  } catch (const weft::Error&) {
  }
  close(file);
  return 0;
}
