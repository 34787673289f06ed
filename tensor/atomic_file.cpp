// Writing files whole.
#include "tensor/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tensor/error.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(path) {
  WEFT_CHECK(!path.empty(), "save", "the file name is empty");
  std::error_code ignored;
  if (fs::is_symlink(path, ignored)) path_ = fs::weakly_canonical(path, ignored).string();
  WEFT_CHECK(!fs::exists(path_, ignored) || fs::is_regular_file(path_, ignored), "save", "{}: is not a file", path);
  static std::atomic<int> count{0};
  temporary_ = fmt::format("{}.tmp-{}-{}", path_, getpid(), count.fetch_add(1));
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) fail_with("cannot be created", errno);
}

AtomicFile::~AtomicFile() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::fail_with(const char* what, int code) const {
  std::string space;
  struct statvfs info {};
  if ((code == ENOSPC || code == EDQUOT || code == EFBIG) && statvfs(folder_of(path_).c_str(), &info) == 0)
    space = fmt::format(" after {} bytes; {} bytes are free", written_, uint64_t{info.f_bavail} * info.f_frsize);
  fail("save", fmt::format("{}: {}: {}{}; what was there is unchanged", path_, what, std::strerror(code), space));
}

void AtomicFile::write(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), std::min<size_t>(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with("cannot be written", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
    written_ += n;
  }
}

void AtomicFile::commit() {
  if (fsync(file_) != 0) fail_with("cannot be synced", errno);
  const int closed = close(std::exchange(file_, -1));
  if (closed != 0) fail_with("cannot be closed", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_with("cannot be renamed into place", errno);
  temporary_.clear();
  if (const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    fsync(folder);  // some file systems cannot; the file itself is complete
    close(folder);
  }
}

}  // namespace weft
