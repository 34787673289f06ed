// Files for tests: a folder that goes away with the test, IDX bytes, gzip.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace weft::testing_files {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "weft-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

inline void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string idx(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string bytes{0, 0, 8, static_cast<char>(sizes.size())};
  for (uint32_t size : sizes)
    for (int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 255);
  return bytes + values;
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A header and content of a ustar archive; `claimed` is the size in the header where it differs.
inline std::string tar_entry(const std::string& name, const std::string& content, char type = '0',
                             int64_t claimed = -1) {
  std::string header(512, '\0');
  auto put = [&](size_t at, const std::string& bytes) { header.replace(at, bytes.size(), bytes); };
  char digits[16];
  put(0, name.substr(0, 100));
  put(100, "0000644");
  std::snprintf(digits, sizeof digits, "%011lo", claimed < 0 ? content.size() : static_cast<size_t>(claimed));
  put(124, digits);
  put(148, "        ");
  header[156] = type;
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(digits, sizeof digits, "%06o", sum);
  put(148, std::string(digits, 7));
  return header + content + std::string((512 - content.size() % 512) % 512, '\0');
}

inline const std::string tar_end(1024, '\0');

/// A small MNIST: 3 training and 2 test images of 2 × 2.
inline void write_mnist(const std::string& folder, const std::string& joint = "-", bool packed = false) {
  auto put = [&](const std::string& part, const std::string& kind, const std::string& bytes) {
    write(folder + "/" + part + joint + kind + (packed ? ".gz" : ""), packed ? gzip(bytes) : bytes);
  };
  put("train-images", "idx3-ubyte", idx({3, 2, 2}, "abcdefghijkl"));
  put("train-labels", "idx1-ubyte", idx({3}, {5, 0, 9}));
  put("t10k-images", "idx3-ubyte", idx({2, 2, 2}, "ABCDEFGH"));
  put("t10k-labels", "idx1-ubyte", idx({2}, {7, 2}));
}

}  // namespace weft::testing_files
