// The characters by which GPT-2's files write bytes: printable ones as themselves, the others from U+0100 on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft::data {

/// The bytes in the order of their characters, which is that of GPT-2's first 256 ids.
constexpr std::array<uint8_t, 256> kBytesInOrder = [] {
  std::array<uint8_t, 256> order{};
  size_t n = 0;
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 255 && b != 173); };
  for (const bool first : {true, false})
    for (int b = 0; b < 256; ++b)
      if (printable(b) == first) order[n++] = static_cast<uint8_t>(b);
  return order;
}();
constexpr size_t kPrintableBytes = 188;

/// Bytes as characters, in UTF-8.
std::string to_characters(std::string_view bytes);
/// The bytes that characters stand for; nothing where one stands for none.
std::optional<std::string> from_characters(std::string_view characters);

}  // namespace weft::data
