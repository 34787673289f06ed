// The IDX reader. Everything is checked against what the file holds before memory is taken; a gzip stream is read to
// its end, since that is where zlib tells of a cut or a wrong checksum.
#include "data/idx.h"

#include <sys/stat.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "tensor/error.h"

namespace weft::data {
namespace {

constexpr int64_t kBestRatio = 1032;  // deflate makes at most this many bytes of one (zlib's documentation)

/// The plain bytes of a file or of a gzip stream.
class Bytes {
 public:
  Bytes(std::FILE* file, std::string name, bool gzip) : file_(file), name_(std::move(name)), gzip_(gzip) {
    if (gzip_) WEFT_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, "idx", "{}: zlib cannot start", name_);
  }
  ~Bytes() {
    if (gzip_) inflateEnd(&stream_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  /// Fills `out`; returns how many bytes there were, fewer only at the end.
  int64_t read(std::span<uint8_t> out) {
    const int64_t n = gzip_ ? inflate_into(out) : read_file(out);
    total_ += n;
    return n;
  }
  /// Bytes read so far.
  int64_t total() const { return total_; }

 private:
  int64_t read_file(std::span<uint8_t> out) {
    const size_t n = std::fread(out.data(), 1, out.size(), file_);
    WEFT_CHECK(n == out.size() || !std::ferror(file_), "idx", "{}: cannot be read: {}", name_, std::strerror(errno));
    return static_cast<int64_t>(n);
  }

  /// True where another byte of input is at hand.
  bool refill() {
    if (stream_.avail_in > 0) return true;
    stream_.next_in = buffer_.data();
    stream_.avail_in = static_cast<uInt>(read_file(buffer_));
    return stream_.avail_in > 0;
  }

  int64_t inflate_into(std::span<uint8_t> out) {
    size_t filled = 0;
    while (filled < out.size() && !ended_) {
      const size_t piece = std::min<size_t>(out.size() - filled, 1 << 30);
      stream_.next_out = out.data() + filled;
      stream_.avail_out = static_cast<uInt>(piece);
      const bool more = refill();
      const int code = inflate(&stream_, Z_NO_FLUSH);
      filled += piece - stream_.avail_out;
      if (code == Z_STREAM_END) {
        next_member();
      } else if (code == Z_BUF_ERROR && !more) {
        fail("idx",
             fmt::format("{}: the gzip stream is cut off: it ends after {} decompressed bytes, without its checksum",
                         name_, total_ + static_cast<int64_t>(filled)));
      } else {
        WEFT_CHECK(code == Z_OK || code == Z_BUF_ERROR, "idx", "{}: the gzip stream is damaged ({})", name_,
                   stream_.msg ? stream_.msg : "zlib error " + std::to_string(code));
      }
    }
    return static_cast<int64_t>(filled);
  }

  /// A gzip file may be several streams, one after another; anything else is not part of it.
  void next_member() {
    if (!refill()) {
      ended_ = true;
      return;
    }
    WEFT_CHECK(*stream_.next_in == 0x1f, "idx", "{}: other bytes follow the end of the gzip stream", name_);
    inflateReset(&stream_);
  }

  std::FILE* file_;
  std::string name_;
  bool gzip_;
  bool ended_ = false;
  int64_t total_ = 0;
  z_stream stream_{};
  std::array<uint8_t, 1 << 16> buffer_;
};

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
  const auto bytes = std::make_unique<Bytes>(file, name, gzip);
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
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  WEFT_CHECK(file != nullptr, "idx", "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat info {};
  WEFT_CHECK(fstat(fileno(file.get()), &info) == 0 && S_ISREG(info.st_mode), "idx", "{}: is not a file", path);
  return read_idx(file.get(), info.st_size, path, path.ends_with(".gz"));
}

}  // namespace weft::data
