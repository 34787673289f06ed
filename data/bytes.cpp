// Files and gzip streams as plain bytes.
#include "data/bytes.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tensor/error.h"

namespace weft::data {

Bytes::Bytes(std::FILE* file, std::string name, bool gzip, const char* op)
    : file_(file), name_(std::move(name)), op_(op), gzip_(gzip) {
  if (gzip_) WEFT_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK, op_, "{}: zlib cannot start", name_);
}

Bytes::~Bytes() {
  if (gzip_) inflateEnd(&stream_);
}

int64_t Bytes::read(std::span<uint8_t> out) {
  const int64_t n = gzip_ ? inflate_into(out) : read_file(out);
  total_ += n;
  return n;
}

int64_t Bytes::read_file(std::span<uint8_t> out) {
  const size_t n = std::fread(out.data(), 1, out.size(), file_);
  WEFT_CHECK(n == out.size() || !std::ferror(file_), op_, "{}: cannot be read: {}", name_, std::strerror(errno));
  return static_cast<int64_t>(n);
}

/// True where another byte of input is at hand.
bool Bytes::refill() {
  if (stream_.avail_in > 0) return true;
  stream_.next_in = buffer_.data();
  stream_.avail_in = static_cast<uInt>(read_file(buffer_));
  return stream_.avail_in > 0;
}

int64_t Bytes::inflate_into(std::span<uint8_t> out) {
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
      fail(op_, fmt::format("{}: the gzip stream is cut off: it ends after {} decompressed bytes, without its checksum",
                            name_, total_ + static_cast<int64_t>(filled)));
    } else {
      WEFT_CHECK(code == Z_OK || code == Z_BUF_ERROR, op_, "{}: the gzip stream is damaged ({})", name_,
                 stream_.msg ? stream_.msg : "zlib error " + std::to_string(code));
    }
  }
  return static_cast<int64_t>(filled);
}

/// A gzip file may be several streams, one after another; anything else is not part of it.
void Bytes::next_member() {
  if (!refill()) {
    ended_ = true;
    return;
  }
  WEFT_CHECK(*stream_.next_in == 0x1f, op_, "{}: other bytes follow the end of the gzip stream", name_);
  inflateReset(&stream_);
}

File open_file(const std::string& path, const char* op) {
  File file(std::fopen(path.c_str(), "rbe"), std::fclose);
  WEFT_CHECK(file != nullptr, op, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat info {};
  WEFT_CHECK(fstat(fileno(file.get()), &info) == 0 && S_ISREG(info.st_mode), op, "{}: is not a file", path);
  return file;
}

std::string read_whole(const std::string& path, const char* op) {
  const File file = open_file(path, op);
  struct stat info {};
  fstat(fileno(file.get()), &info);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file.get()));
  WEFT_CHECK(!std::ferror(file.get()), op, "{}: cannot be read: {}", path, std::strerror(errno));
  return bytes;
}

}  // namespace weft::data
