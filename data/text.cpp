// Cleaning in one pass over the bytes, and the vocabulary.
#include "data/text.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "tensor/error.h"
#include "tensor/view.h"

namespace weft::data {
namespace {

enum class Kind : uint8_t { blank, word, special };

struct Byte {
  Kind kind;
  char lower;
};

constexpr std::array<Byte, 256> kBytes = [] {
  std::array<Byte, 256> bytes{};
  for (int i = 0; i < 256; ++i) {
    const bool upper = i >= 'A' && i <= 'Z', letter = upper || (i >= 'a' && i <= 'z');
    const bool special = i == '\'' || i == '`' || i == '<' || i == 0xc2 || i == 0xc3 || i == 0xe2;
    const bool word = letter || (i >= '0' && i <= '9') || i >= 0x80;
    bytes[static_cast<size_t>(i)] = {special ? Kind::special
                                     : word  ? Kind::word
                                             : Kind::blank,
                                     static_cast<char>(upper ? i + 'a' - 'A' : i)};
  }
  return bytes;
}();

/// What stands at a special byte: how long it is, and what comes of it ("" is left out, " " separates).
struct Piece {
  size_t bytes;
  std::array<char, 3> out;
  size_t out_bytes;
};

Piece left_out(size_t bytes) { return {bytes, {}, 0}; }
Piece separator(size_t bytes) { return {bytes, {' '}, 1}; }

/// A tag without attributes, "<br />" or "</i>", or the character alone.
Piece tag(std::string_view rest) {
  size_t i = 1;
  auto at = [&] { return i < rest.size() ? rest[i] : '\0'; };
  if (at() == '/') ++i;
  const size_t name = i;
  while ((at() >= 'a' && at() <= 'z') || (at() >= 'A' && at() <= 'Z')) ++i;
  if (i == name || i - name > 10) return separator(1);
  while (at() == ' ') ++i;
  if (at() == '/') ++i;
  return separator(at() == '>' ? i + 1 : 1);
}

/// Punctuation beyond ASCII, as texts have it: Latin-1 with the controls that stand for Windows' quotes and dashes, and
/// the block of dashes, quotes and blanks (U+2000 to U+206F). Capitals of Latin-1 become small.
Piece special(std::string_view rest) {
  const auto byte = [&](size_t i) { return i < rest.size() ? static_cast<uint8_t>(rest[i]) : 0; };
  const uint8_t first = byte(0), second = byte(1), third = byte(2);
  const bool two = second >= 0x80 && second < 0xc0, three = two && third >= 0x80 && third < 0xc0;
  if (first == '\'' || first == '`') return left_out(1);
  if (first == '<') return tag(rest);
  if (first == 0xc2 && two) {
    if (second == 0x91 || second == 0x92 || second == 0xb4 || second == 0xad) return left_out(2);  // ‘ ’ ´, soft hyphen
    const bool letter = second == 0xaa || second == 0xb5 || second == 0xba;                        // ª µ º
    return letter ? Piece{2, {rest[0], rest[1]}, 2} : separator(2);
  }
  if (first == 0xc3 && two) {
    if (second == 0x97 || second == 0xb7) return separator(2);  // × ÷
    const bool upper = second < 0x9f;                           // À to Þ
    return {2, {rest[0], static_cast<char>(upper ? second + 0x20 : second)}, 2};
  }
  if (first == 0xe2 && three && (second == 0x80 || (second == 0x81 && third <= 0xaf))) {
    if (second == 0x80 && (third == 0x98 || third == 0x99 || third == 0x8d)) return left_out(3);  // ‘ ’, joiner
    return separator(3);
  }
  return {1, {rest[0]}, 1};
}

}  // namespace

void clean(std::string_view text, std::string& out) {
  out.resize(text.size() + 1);  // no piece gets longer
  char* const begin = out.data();
  char* to = begin;
  const auto separate = [&] {
    if (to > begin && to[-1] != ' ') *to++ = ' ';
  };
  for (size_t i = 0; i < text.size();) {
    const Byte byte = kBytes[static_cast<uint8_t>(text[i])];
    if (byte.kind == Kind::word) {
      *to++ = byte.lower;
      ++i;
    } else if (byte.kind == Kind::blank) {
      separate();
      ++i;
    } else {
      const Piece piece = special(text.substr(i));
      if (piece.out_bytes == 1 && piece.out[0] == ' ')
        separate();
      else
        to = std::copy_n(piece.out.begin(), piece.out_bytes, to);
      i += piece.bytes;
    }
  }
  separate();
  out.resize(static_cast<size_t>(to - begin));
}

std::string clean(std::string_view text) {
  std::string out;
  clean(text, out);
  return out;
}

std::vector<int32_t> by_frequency(const WordTable& words, std::span<const int64_t> counts) {
  WEFT_CHECK(counts.size() == static_cast<size_t>(words.size()), "vocabulary", "{} words have {} counts", words.size(),
             counts.size());
  std::vector<int32_t> order;
  for (int32_t i = 0; i < words.size(); ++i)
    if (counts[static_cast<size_t>(i)] > 0) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const int64_t of_a = counts[static_cast<size_t>(a)], of_b = counts[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : words[a] < words[b];
  });
  return order;
}

Vocabulary::Vocabulary(std::span<const std::string_view> words) {
  for (const std::string_view word : words) {
    WEFT_CHECK(!word.empty() && word.find('\n') == std::string_view::npos, "vocabulary", "word {} is {}", words_.size(),
               word.empty() ? "empty" : "of several lines");
    const int32_t number = words_.size();
    WEFT_CHECK(words_.add(word) == number, "vocabulary", "\"{}\" is there twice", word);
  }
}

Vocabulary Vocabulary::build(std::span<const std::string> texts, int64_t size) {
  WEFT_CHECK(size >= kFirstWord, "vocabulary", "the size counts the {} special ids, got {}", kFirstWord, size);
  WordTable words;
  std::vector<int64_t> counts;
  std::string cleaned;
  for (const std::string& text : texts) {
    clean(text, cleaned);
    for_each_word(cleaned, [&](std::string_view word) {
      const auto number = static_cast<size_t>(words.add(word));
      if (number == counts.size()) counts.push_back(0);
      ++counts[number];
    });
  }
  std::vector<std::string_view> chosen;
  for (const int32_t number : by_frequency(words, counts)) {
    if (static_cast<int64_t>(chosen.size()) == size - kFirstWord) break;
    chosen.push_back(words[number]);
  }
  return Vocabulary(chosen);
}

std::string_view Vocabulary::word(int64_t id) const {
  WEFT_CHECK(id >= 0 && id < size(), "vocabulary", "id {} is outside of the {} ids", id, size());
  constexpr std::array<std::string_view, kFirstWord> kSpecial{"<pad>", "<start>", "<unknown>"};
  return id < kFirstWord ? kSpecial[static_cast<size_t>(id)] : words_[static_cast<int32_t>(id) - kFirstWord];
}

std::vector<int32_t> Vocabulary::ids(std::string_view text) const {
  std::vector<int32_t> out{kStart};
  for_each_word(clean(text), [&](std::string_view word) { out.push_back(id(word)); });
  return out;
}

std::vector<int32_t> Vocabulary::encode(std::string_view text, int64_t max_length) const {
  WEFT_CHECK(max_length >= 1, "vocabulary", "the length must be at least 1, got {}", max_length);
  const std::vector<int32_t> all = ids(text);
  const auto kept = std::min(all.size(), static_cast<size_t>(max_length));
  std::vector<int32_t> out(static_cast<size_t>(max_length), kPad);
  std::copy_backward(all.end() - static_cast<std::ptrdiff_t>(kept), all.end(), out.end());
  return out;
}

Tensor Vocabulary::to_tensor() const {
  std::string lines;
  for (int32_t i = 0; i < words_.size(); ++i) {
    lines += words_[i];
    lines += '\n';
  }
  return from<uint8_t>({reinterpret_cast<const uint8_t*>(lines.data()), lines.size()},
                       {static_cast<int64_t>(lines.size())});
}

Vocabulary Vocabulary::from_tensor(const Tensor& lines) {
  WEFT_CHECK(lines.dtype() == u8 && lines.dim() == 1 && lines.device() == cpu, "vocabulary",
             "a vocabulary is u8 [bytes] on the CPU, got {} {}", name(lines.dtype()), str(lines.sizes()));
  const Tensor whole = raw::contiguous(lines);
  std::string_view rest(reinterpret_cast<const char*>(whole.data<uint8_t>()), static_cast<size_t>(whole.numel()));
  std::vector<std::string_view> words;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    WEFT_CHECK(end != std::string_view::npos, "vocabulary", "the last word has no line break: the text is cut off");
    words.push_back(rest.substr(0, end));
    rest.remove_prefix(end + 1);
  }
  return Vocabulary(words);
}

}  // namespace weft::data
