// A file that is there as a whole or not at all: written beside its place, synced, then renamed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weft {

/// `AtomicFile file(path); file.write(…); file.commit();` Without `commit` nothing changes at `path`. A symbolic link
/// is followed. Every fault throws Error and leaves what was at `path`.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const char> bytes);
  /// Syncs the file, renames it to its place, and syncs the folder.
  void commit();

 private:
  [[noreturn]] void fail_with(const char* what, int code) const;

  std::string path_, temporary_;
  int file_ = -1;
  int64_t written_ = 0;
};

}  // namespace weft
