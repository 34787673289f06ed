// The IDX reader. Everything is checked against what the file holds before memory is taken.
#include "data/idx.h"

#include <sys/stat.h>

#include <array>
#include <memory>
#include <span>

#include "data/bytes.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

constexpr int64_t kBestRatio = 1032;  // deflate makes at most this many bytes of one (zlib's documentation)

uint32_t big_endian(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}

/// Checks the first four bytes; returns the number of dimensions.
int64_t dimensions(std::span<const uint8_t, 4> magic, const std::string& name, bool gzip) {
  const uint32_t value = big_endian(magic.data());
  WEFT_CHECK(gzip || magic[0] != 0x1f || magic[1] != 0x8b, "idx",
             "{}: is gzip, not IDX: give it a name that ends in .gz, or unpack it", name);
  WEFT_CHECK(magic[0] == 0 && magic[1] == 0 && magic[3] >= 1, "idx",
             "{}: is not an IDX file: it starts with 0x{:08x}, expected 0x0000 and a type", name, value);
  WEFT_CHECK(magic[2] == 0x08, "idx", "{}: holds values of IDX type 0x{:02x}; only bytes (0x08) can be read", name,
             magic[2]);
  WEFT_CHECK(magic[3] <= kMaxDims, "idx", "{}: has {} dimensions, at most {} can be read", name, magic[3], kMaxDims);
  return magic[3];
}

}  // namespace

Tensor read_idx(std::FILE* file, int64_t file_bytes, const std::string& name, bool gzip) {
  if (gzip) {
    std::array<uint8_t, 2> start{};
    const size_t n = std::fread(start.data(), 1, start.size(), file);
    WEFT_CHECK(n == 2 && start[0] == 0x1f && start[1] == 0x8b, "idx",
               "{}: is not gzip, though its name ends in .gz: it starts with 0x{:02x}{:02x}", name, start[0], start[1]);
    std::rewind(file);
  }
  const auto bytes = std::make_unique<Bytes>(file, name, gzip, "idx");
  std::array<uint8_t, 4> word{};
  WEFT_CHECK(bytes->read(word) == 4, "idx", "{}: is too short for an IDX header: {} bytes", name, bytes->total());
  Shape sizes = Shape::filled(dimensions(word, name, gzip), 0);
  int64_t expected = 1;
  for (int64_t& size : sizes) {
    WEFT_CHECK(bytes->read(word) == 4, "idx", "{}: ends inside its header, after {} bytes", name, bytes->total());
    size = big_endian(word.data());
    WEFT_CHECK(!__builtin_mul_overflow(expected, size, &expected), "idx",
               "{}: the header claims more than 2^63 values: {}", name, str(sizes));
  }
  const int64_t header = bytes->total();
  const int64_t room = gzip ? (file_bytes > INT64_MAX / kBestRatio ? INT64_MAX : file_bytes * kBestRatio) : file_bytes;
  WEFT_CHECK(expected <= room - header, "idx", "{}: the header claims {} bytes of values {}, the file {} {}", name,
             expected, str(sizes), gzip ? "unpacks to at most" : "has", room - header);
  WEFT_CHECK(gzip || expected == file_bytes - header, "idx",
             "{}: more bytes follow the {} that the header claims {}: the file has {}", name, expected, str(sizes),
             file_bytes - header);

  Tensor values = empty(sizes, u8);
  const int64_t got = bytes->read({values.data<uint8_t>(), static_cast<size_t>(expected)});
  WEFT_CHECK(got == expected, "idx", "{}: the header claims {} bytes of values {}, the gzip stream holds {}", name,
             expected, str(sizes), got);
  WEFT_CHECK(bytes->read(std::span(word).first(1)) == 0, "idx",
             "{}: more bytes follow the {} that the header claims {} in the gzip stream", name, expected, str(sizes));
  return values;
}

Tensor read_idx(const std::string& path) {
  const File file = open_file(path, "idx");
  struct stat info {};
  fstat(fileno(file.get()), &info);
  return read_idx(file.get(), info.st_size, path, path.ends_with(".gz"));
}

}  // namespace weft::data
