// Any bytes as vocab.json and merges.txt (a NUL between them), and as text: an error, or tokens that decode to the
// text.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "data/bpe.h"
#include "tensor/error.h"

namespace {

struct Memory {
  explicit Memory(std::string_view bytes) : file(memfd_create("input", MFD_CLOEXEC)) {
    if (file < 0 || write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  ~Memory() { close(file); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(file); }
  int file;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const size_t cut = std::min(input.find('\0'), size);
  const Memory vocabulary(input.substr(0, cut)), merges(input.substr(std::min(cut + 1, size)));
  try {
    const weft::data::Bpe bpe = weft::data::Bpe::load(vocabulary.path(), merges.path());
    if (bpe.decode(bpe.encode(input)) != input) std::abort();
  } catch (const weft::Error&) {
  }
  return 0;
}
