// Downloads by libcurl. The .part file is locked while it is written, so that ranks on one machine do not mix their
// bytes.
#include "data/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "data/sha256.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

/// PATH.part, open and locked.
class Part {
 public:
  explicit Part(const std::string& path) : path(path + ".part") {
    file_ = open(this->path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    WEFT_CHECK(file_ >= 0, "download", "{}: cannot be created: {}", this->path, std::strerror(errno));
    while (flock(file_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Part() { close(file_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  /// False where another process renamed or removed the file while we waited for the lock.
  bool current() const {
    struct stat here {
    }, there{};
    return fstat(file_, &here) == 0 && stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino;
  }
  int64_t size() const {
    struct stat info {};
    return fstat(file_, &info) == 0 ? info.st_size : 0;
  }
  void clear() const { WEFT_CHECK(ftruncate(file_, 0) == 0, "download", "{}: {}", path, std::strerror(errno)); }
  bool append(const char* bytes, size_t n) const {
    while (n > 0) {
      const ssize_t written = write(file_, bytes, n);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      bytes += written;
      n -= static_cast<size_t>(written);
    }
    return true;
  }
  void publish(const std::string& to) const {
    WEFT_CHECK(fsync(file_) == 0 && rename(path.c_str(), to.c_str()) == 0, "download", "{}: cannot be written: {}", to,
               std::strerror(errno));
  }

  const std::string path;

 private:
  int file_;
};

/// One transfer, as libcurl's callbacks see it.
struct Transfer {
  const Part& part;
  std::string name;
  bool progress;
  int64_t resumed;
  int write_error = 0;
  int percent = -1;
};

size_t on_data(char* bytes, size_t, size_t n, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.part.append(bytes, n)) return n;
  transfer.write_error = errno;
  return 0;
}

int on_progress(void* user, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  const auto all = static_cast<double>(total + transfer.resumed), done = static_cast<double>(now + transfer.resumed);
  if (!transfer.progress || total <= 0 || !isatty(STDERR_FILENO)) return 0;
  const int percent = static_cast<int>(100 * done / all);
  if (percent != std::exchange(transfer.percent, percent))
    fmt::print(stderr, "\r{}  {:.1f} of {:.1f} MB  {:3} %", transfer.name, done / 1e6, all / 1e6, percent);
  return 0;
}

struct Result {
  CURLcode code;
  long status;  // HTTP's, 0 for files
  std::string text;
};

/// Appends to the part what the server has after it.
Result fetch(const std::string& url, Transfer& transfer, const DownloadOptions& options) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  WEFT_CHECK(started == CURLE_OK && curl, "download", "libcurl cannot start");
  CURL* c = curl.get();
  std::string message(CURL_ERROR_SIZE, '\0');
  curl_easy_setopt(c, CURLOPT_URL, url.c_str());
  curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https,file");
  curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, options.silent_seconds);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 100L);
  curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, options.silent_seconds);
  curl_easy_setopt(c, CURLOPT_USERAGENT, "weft");
  curl_easy_setopt(c, CURLOPT_ERRORBUFFER, message.data());
  curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
  curl_easy_setopt(c, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(c, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
  if (transfer.resumed > 0) curl_easy_setopt(c, CURLOPT_RESUME_FROM_LARGE, static_cast<curl_off_t>(transfer.resumed));
  Result result{curl_easy_perform(c), 0, {}};
  curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &result.status);
  result.text = message[0] ? message.c_str() : curl_easy_strerror(result.code);
  return result;
}

bool good_file(const std::string& path, const std::string& sha256) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && (sha256.empty() || sha256_of_file(path) == sha256);
}

/// Fills the part: goes on after a cut, starts again where the server cannot go on.
void fill(const std::string& url, const Part& part, const std::string& name, const DownloadOptions& options) {
  Result result{CURLE_OK, 0, {}};
  for (int attempt = 0; attempt < std::max(options.attempts, 1); ++attempt) {
    Transfer transfer{part, name, options.progress, part.size()};
    result = fetch(url, transfer, options);
    if (transfer.percent >= 0) fmt::print(stderr, "\n");
    if (result.code == CURLE_OK) return;
    WEFT_CHECK(transfer.write_error == 0, "download", "{}: cannot be written: {}", part.path,
               std::strerror(transfer.write_error));
    // The server does not do ranges, or has no bytes after ours: what we have may be of another file.
    if (result.code == CURLE_RANGE_ERROR || result.code == CURLE_BAD_DOWNLOAD_RESUME || result.status == 416)
      part.clear();
    else if (result.code == CURLE_COULDNT_RESOLVE_HOST || result.code == CURLE_COULDNT_CONNECT)
      break;
    else if (result.code == CURLE_FILE_COULDNT_READ_FILE || result.status >= 400)
      break;
    else if (result.code == CURLE_OPERATION_TIMEDOUT && part.size() == transfer.resumed)
      break;  // a server that has sent nothing is not asked again
  }
  const int64_t size = part.size();
  std::error_code ignored;
  if (size == 0) fs::remove(part.path, ignored);
  fail("download",
       fmt::format(
           "{}: {}{}", url, result.text,
           size > 0 ? fmt::format("; {} bytes are kept in {}, and the next try goes on there", size, part.path) : ""));
}

}  // namespace

void download(const std::string& url, const std::string& path, const DownloadOptions& options) {
  if (good_file(path, options.sha256)) return;
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  WEFT_CHECK(!error, "download", "{}: cannot be created: {}", folder.string(), error.message());
  const std::string name = fs::path(path).filename().string();
  while (true) {
    const Part part(path);
    if (!part.current()) continue;
    if (good_file(path, options.sha256)) {  // another process was first
      fs::remove(part.path, error);
      return;
    }
    bool resumed = part.size() > 0;
    fill(url, part, name, options);
    std::string sum = options.sha256.empty() ? "" : sha256_of_file(part.path);
    if (sum != options.sha256 && resumed) {  // what was there before belonged to something else
      part.clear();
      fill(url, part, name, options);
      sum = sha256_of_file(part.path);
    }
    if (sum != options.sha256) {
      fs::remove(part.path, error);
      fail("download", fmt::format("{}: sha256 is {}, expected {}; nothing was kept", url, sum, options.sha256));
    }
    if (options.progress)
      fmt::print(stderr, "{}  {:.1f} MB  downloaded\n", name, static_cast<double>(part.size()) / 1e6);
    part.publish(path);
    return;
  }
}

std::string cache_folder() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string own = variable("WEFT_CACHE"); !own.empty()) return own;
  if (const std::string xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/weft";
  const std::string home = variable("HOME");
  WEFT_CHECK(!home.empty(), "cache", "there is no place for downloads: set WEFT_CACHE, or HOME");
  return home + "/.cache/weft";
}

}  // namespace weft::data
