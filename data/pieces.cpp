// The scanner of pieces. Unicode's letters and numbers come from a generated table.
#include "data/pieces.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>

namespace weft::data {
namespace {

#include "data/unicode_classes.inc"

enum class Class : uint8_t { letter, number, space, other, end };

struct Character {
  Class kind;
  size_t bytes;
};

/// First code points of runs and what follows them, ascending: an odd number of bounds up to a point is inside.
template <size_t n>
constexpr std::array<uint32_t, n> bounds(const uint32_t (&gaps)[n]) {
  std::array<uint32_t, n> sums{};
  uint32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sums[i] = sum += gaps[i];
  return sums;
}

constexpr auto kLetterBounds = bounds(kLetters);
constexpr auto kNumberBounds = bounds(kNumbers);

bool inside(std::span<const uint32_t> bounds, uint32_t point) {
  return (std::upper_bound(bounds.begin(), bounds.end(), point) - bounds.begin()) % 2 == 1;
}

Class class_of(uint32_t point) {
  if (point < 0x80) {
    const uint32_t lower = point | 0x20;
    if (lower >= 'a' && lower <= 'z') return Class::letter;
    if (point >= '0' && point <= '9') return Class::number;
    return point == ' ' || (point >= '\t' && point <= '\r') ? Class::space : Class::other;
  }
  if (point == 0x85 || point == 0xa0 || point == 0x1680 || (point >= 0x2000 && point <= 0x200a) || point == 0x2028 ||
      point == 0x2029 || point == 0x202f || point == 0x205f || point == 0x3000)
    return Class::space;
  if (inside(kLetterBounds, point)) return Class::letter;
  return inside(kNumberBounds, point) ? Class::number : Class::other;
}

/// The character at a place: UTF-8 in its shortest form and no surrogate, or a byte alone.
Character character(std::string_view text, size_t at) {
  if (at >= text.size()) return {Class::end, 0};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {class_of(first), 1};
  const size_t n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || n > text.size() - at) return {Class::other, 1};
  uint32_t point = first & (0x7fu >> n);
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {Class::other, 1};
    point = point << 6 | (byte(i) & 0x3f);
  }
  constexpr std::array<uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[n] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return {Class::other, 1};
  return {class_of(point), n};
}

}  // namespace

size_t next_piece(std::string_view text) {
  if (text[0] == '\'')
    for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.starts_with(ending)) return ending.size();
  const size_t blank = text[0] == ' ';
  Character c = character(text, blank);
  if (c.kind != Class::space && c.kind != Class::end) {
    const Class kind = c.kind;
    size_t at = blank;
    for (; c.kind == kind; c = character(text, at)) at += c.bytes;
    return at;
  }
  size_t at = 0, last = 0;
  for (c = character(text, 0); c.kind == Class::space; c = character(text, at)) at += last = c.bytes;
  return c.kind == Class::end || at == last ? at : at - last;
}

std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> all;
  for (; !text.empty(); text.remove_prefix(all.back().size())) all.push_back(text.substr(0, next_piece(text)));
  return all;
}

}  // namespace weft::data
