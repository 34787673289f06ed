// The files in a tar archive, gzip or not, read from front to back without unpacking anything to disk.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace weft::data {

class Bytes;

/// A file in an archive.
struct TarEntry {
  std::string name;  ///< with its folders
  int64_t size = 0;
};

/// `while (auto entry = archive.next()) … archive.read()`. Reads ustar, the older tar without a magic, long names of
/// GNU and of pax; folders, links and devices are passed over. Each kind of damage throws with a message of its own;
/// what the archive claims never takes memory before the bytes are there. Archives with sparse files are refused.
class TarReader {
 public:
  /// Whether the file is gzip is seen from its first bytes, not from its name.
  explicit TarReader(const std::string& path);
  /// The same from an open file, which stays the caller's; `name` is for messages.
  TarReader(std::FILE* file, const std::string& name);
  ~TarReader();

  /// The next file, passing over what is left of the one before; nothing after the last, when the archive was read and
  /// checked to its very end.
  std::optional<TarEntry> next();
  /// The content of the file that `next` gave, once. Throws where it has more than `limit` bytes.
  std::string read(int64_t limit = int64_t{1} << 30);

 private:
  bool header();
  void finish();
  void pad(int64_t size);
  void skip();
  std::string text(int64_t size, const char* what);
  void pax(const std::string& records);

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> owned_;
  std::string name_;
  std::unique_ptr<Bytes> bytes_;
  std::array<uint8_t, 512> block_{};
  int64_t entries_ = 0;
  int64_t left_ = 0;  // of the current file's content
  bool ended_ = false;
  TarEntry entry_;
  std::optional<std::string> long_name_;  // for the next file, from an entry before it
  std::optional<int64_t> long_size_;
};

}  // namespace weft::data
