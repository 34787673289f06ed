// Downloads, from files and from a small server of our own that can cut connections; where MNIST is looked for.
#include "data/download.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <thread>

#include "data/mnist.h"
#include "data/sha256.h"
#include "tensor/error.h"
#include "tests/data/files.h"
#include "tests/variable.h"

namespace weft::data {
namespace {

using namespace testing_files;

std::string sha256(const std::string& text) {
  Sha256 sum;
  sum.update({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  return sum.hex();
}

TEST(Sha256, TheStandardsExamples) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/// Serves one body over HTTP on the loopback; the first `cuts` answers stop half-way through what was asked for.
class Server {
 public:
  Server(std::string body, int cuts, bool ranges) : body_(std::move(body)), cuts_(cuts), ranges_(ranges) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    listen(socket_, 8);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/file";
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  std::vector<size_t> starts() {
    std::lock_guard lock(mutex_);
    return starts_;
  }

  std::string url;

 private:
  void serve() {
    for (int peer; (peer = accept(socket_, nullptr, nullptr)) >= 0; close(peer)) {
      std::string request;
      char buffer[1024];
      for (ssize_t n; request.find("\r\n\r\n") == std::string::npos && (n = recv(peer, buffer, sizeof buffer, 0)) > 0;)
        request.append(buffer, static_cast<size_t>(n));
      const size_t range = request.find("Range: bytes=");
      const size_t start = ranges_ && range != std::string::npos ? std::stoul(request.substr(range + 13)) : 0;
      {
        std::lock_guard lock(mutex_);
        starts_.push_back(start);
      }
      const size_t left = body_.size() - std::min(start, body_.size());
      std::string answer = start > 0
                               ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(start) + "-" +
                                     std::to_string(body_.size() - 1) + "/" + std::to_string(body_.size()) + "\r\n"
                               : "HTTP/1.1 200 OK\r\n";
      answer += "Connection: close\r\nContent-Length: " + std::to_string(left) + "\r\n\r\n";
      answer += body_.substr(body_.size() - left, cuts_-- > 0 ? left / 2 : left);
      for (size_t sent = 0; sent < answer.size();) {
        const ssize_t n = send(peer, answer.data() + sent, answer.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<size_t>(n);
      }
    }
  }

  std::string body_;
  int cuts_;
  bool ranges_;
  int socket_;
  std::mutex mutex_;
  std::vector<size_t> starts_;
  std::thread thread_;
};

std::string body_of(size_t n) {
  std::string body;
  for (size_t i = 0; body.size() < n; ++i) body += std::to_string(i * i) + ",";
  return body.substr(0, n);
}

std::string error_of(const std::string& url, const std::string& path, const DownloadOptions& options) {
  try {
    download(url, path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(Download, FromAFile) {
  const Folder folder;
  const std::string body = body_of(100000);
  write(folder / "source", body);
  download("file://" + (folder / "source"), folder / "new/folder/target", {.sha256 = sha256(body), .progress = false});
  EXPECT_EQ(read(folder / "new/folder/target"), body);
  EXPECT_FALSE(fs::exists(folder / "new/folder/target.part"));
  // What is there and good is not fetched again.
  EXPECT_EQ(error_of("file:///no/such/file", folder / "new/folder/target", {.sha256 = sha256(body)}), "");
  EXPECT_NE(error_of("file:///no/such/file", folder / "other", {}), "");
  EXPECT_FALSE(fs::exists(folder / "other"));
  EXPECT_FALSE(fs::exists(folder / "other.part"));
}

TEST(Download, ACutConnectionIsResumed) {
  const Folder folder;
  const std::string body = body_of(50000);
  Server server(body, 2, true);
  download(server.url, folder / "x", {.sha256 = sha256(body), .progress = false});
  EXPECT_EQ(read(folder / "x"), body);
  EXPECT_EQ(server.starts(), (std::vector<size_t>{0, 25000, 37500}));
}

TEST(Download, ALaterCallGoesOnWhereTheFirstWasCut) {
  const Folder folder;
  const std::string body = body_of(50000);
  Server server(body, 1, true);
  const DownloadOptions once{.sha256 = sha256(body), .progress = false, .attempts = 1};
  const std::string text = error_of(server.url, folder / "x", once);
  EXPECT_NE(text.find("25000 bytes are kept"), std::string::npos) << text;
  EXPECT_FALSE(fs::exists(folder / "x"));
  download(server.url, folder / "x", once);
  EXPECT_EQ(read(folder / "x"), body);
  EXPECT_EQ(server.starts(), (std::vector<size_t>{0, 25000}));
}

TEST(Download, AServerWithoutRangesStartsAgain) {
  const Folder folder;
  const std::string body = body_of(50000);
  Server server(body, 1, false);
  download(server.url, folder / "x", {.sha256 = sha256(body), .progress = false});
  EXPECT_EQ(read(folder / "x"), body);
}

TEST(Download, AStalePartIsThrownAway) {
  const Folder folder;
  const std::string body = body_of(50000);
  write(folder / "x.part", std::string(1000, '?'));
  Server server(body, 0, true);
  download(server.url, folder / "x", {.sha256 = sha256(body), .progress = false});
  EXPECT_EQ(read(folder / "x"), body);
  EXPECT_EQ(server.starts(), (std::vector<size_t>{1000, 0}));
}

TEST(Download, AWrongChecksumKeepsNothingAndTheOldFile) {
  const Folder folder;
  write(folder / "source", "new");
  write(folder / "x", "old");
  const std::string text =
      error_of("file://" + (folder / "source"), folder / "x", {.sha256 = sha256("other"), .progress = false});
  EXPECT_NE(text.find("sha256 is " + sha256("new") + ", expected " + sha256("other")), std::string::npos) << text;
  EXPECT_EQ(read(folder / "x"), "old");
  EXPECT_FALSE(fs::exists(folder / "x.part"));
}

TEST(Download, TwoAtOnceShareOneTransfer) {
  const Folder folder;
  const std::string body = body_of(200000);
  Server server(body, 0, true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { download(server.url, folder / "x", {.sha256 = sha256(body), .progress = false}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read(folder / "x"), body);
  EXPECT_EQ(server.starts(), (std::vector<size_t>{0}));
}

TEST(Mnist, IsFoundInTheOrderThatTheManualSays) {
  const Folder given, data, cache, fashion, nothing;
  write_mnist(given.path());
  fs::create_directory(data / "mnist");
  write_mnist(data / "mnist", ".", true);
  fs::create_directory(cache / "mnist");
  const MnistSources sources{.mirrors = {"file://" + nothing.path(), "file://" + fashion.path()},
                             .fashion = fashion.path()};
  const Variable set_cache("WEFT_CACHE", cache.path()), set_data("WEFT_DATA", data.path());
  EXPECT_EQ(find_mnist(given.path(), sources), given.path());
  EXPECT_THROW(find_mnist(nothing.path(), sources), Error);
  EXPECT_EQ(find_mnist("", sources), data / "mnist");
  const Variable no_data("WEFT_DATA", nothing.path());
  try {
    find_mnist("", sources);
    FAIL() << "there is no MNIST";
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const std::string& part :
         {"WEFT_DATA: not in " + nothing.path(), "cache: not in " + (cache / "mnist"),
          "file://" + nothing.path() + "/train-images-idx3-ubyte.gz", "Fashion-MNIST: not in " + fashion.path(),
          std::string("apt-get install dataset-fashion-mnist")})
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  }
  write_mnist(fashion.path());
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_mnist("", sources), fashion.path());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("this is Fashion-MNIST"), std::string::npos);
  write_mnist(cache / "mnist");
  EXPECT_EQ(find_mnist("", sources), cache / "mnist");
}

TEST(Mnist, TheRealFilesAreDownloadedAndChecked) {
  const char* data = std::getenv("WEFT_DATA");
  const std::string source = data ? std::string(data) + "/mnist" : "";
  if (!data || !fs::exists(source + "/t10k-labels-idx1-ubyte.gz"))
    GTEST_SKIP() << "skipped: WEFT_DATA names no folder with the real MNIST";
  const Folder cache, nothing;
  const Variable set_cache("WEFT_CACHE", cache.path()), no_data("WEFT_DATA", "");
  EXPECT_EQ(find_mnist("", {.mirrors = {"file://" + nothing.path(), "file://" + source}}), cache / "mnist");
  EXPECT_EQ(mnist(cache / "mnist").train.size(), 60000);
}

}  // namespace
}  // namespace weft::data
