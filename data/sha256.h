// SHA-256 (FIPS 180-4), for checking what was downloaded.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace weft::data {

class Sha256 {
 public:
  void update(std::span<const uint8_t> bytes);
  /// The digest as 64 hexadecimal digits; the object is used up.
  std::string hex();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t length_ = 0;
};

/// Of a file's bytes.
std::string sha256_of_file(const std::string& path);

}  // namespace weft::data
