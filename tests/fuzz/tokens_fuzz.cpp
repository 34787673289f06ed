// Any bytes as the values of a file of tokens, with the key, size and checksum that fit: an error or tokens, nothing
// else.
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <string>

#include "data/review_tokens.h"
#include "tensor/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  std::string text = "weft reviews 1\n";
  const auto put = [&](uint64_t value) {
    char raw[8];
    std::memcpy(raw, &value, sizeof raw);
    text.append(raw, sizeof raw);
  };
  put(3);
  text += "key";
  put(size);
  put(crc32_z(0, bytes, size));
  text.append(reinterpret_cast<const char*>(bytes), size);
  const int file = memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return 0;
  try {
    weft::data::load_tokens("/proc/self/fd/" + std::to_string(file), "key");
  } catch (const weft::Error&) {
  }
  close(file);
  return 0;
}
