// The plain bytes of a file or of a gzip stream, read from front to back. A gzip stream is read to its end, since that
// is where zlib tells of a cut or a wrong checksum.
#pragma once

#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

namespace weft::data {

class Bytes {
 public:
  /// Reads `file`, which stays the caller's. Errors start with [op] and `name`.
  Bytes(std::FILE* file, std::string name, bool gzip, const char* op);
  ~Bytes();
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  /// Fills `out`; returns how many bytes there were, fewer only at the end.
  int64_t read(std::span<uint8_t> out);
  /// Bytes read so far.
  int64_t total() const { return total_; }

 private:
  int64_t read_file(std::span<uint8_t> out);
  bool refill();
  int64_t inflate_into(std::span<uint8_t> out);
  void next_member();

  std::FILE* file_;
  std::string name_;
  const char* op_;
  bool gzip_;
  bool ended_ = false;
  int64_t total_ = 0;
  z_stream stream_{};
  std::array<uint8_t, 1 << 16> buffer_;
};

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Opens a regular file for reading; throws with [op] and the path where it cannot.
File open_file(const std::string& path, const char* op);

/// All bytes of a regular file.
std::string read_whole(const std::string& path, const char* op);

}  // namespace weft::data
