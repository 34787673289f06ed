// vocab.json, an object of tokens and ids, and merges.txt, a pair a line: both write bytes as characters.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/bpe.h"
#include "data/byte_characters.h"
#include "data/bytes.h"
#include "tensor/atomic_file.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

/// The code point by which a byte is written.
std::array<uint32_t, 256> code_points() {
  std::array<uint32_t, 256> points{};
  for (size_t i = 0; i < 256; ++i)
    points[kBytesInOrder[i]] =
        i < kPrintableBytes ? kBytesInOrder[i] : static_cast<uint32_t>(256 + i - kPrintableBytes);
  return points;
}

/// The tokens of vocab.json in the order of their ids.
std::vector<std::string> read_vocabulary(const std::string& path) {
  const auto object = nlohmann::json::parse(read_whole(path, "bpe"), nullptr, false);
  WEFT_CHECK(!object.is_discarded(), "bpe", "{}: is no JSON", path);
  WEFT_CHECK(object.is_object(), "bpe", "{}: is no JSON object of tokens and ids", path);
  std::vector<std::string> tokens(object.size());
  for (const auto& [key, value] : object.items()) {
    const bool good = value.is_number_integer() && value >= 0 && value < object.size();
    WEFT_CHECK(good, "bpe", "{}: token \"{}\" has the id {}; {} tokens want the ids 0 to {}", path, key, value.dump(),
               object.size(), object.size() - 1);
    auto bytes = from_characters(key);
    WEFT_CHECK(bytes && !bytes->empty(), "bpe", "{}: token \"{}\" has a character that stands for no byte", path, key);
    std::string& token = tokens[value.get<size_t>()];
    WEFT_CHECK(token.empty(), "bpe", "{}: token \"{}\" has the id {}, which another one has, too", path, key,
               value.dump());
    token = std::move(*bytes);
  }
  return tokens;
}

}  // namespace

std::string to_characters(std::string_view bytes) {
  static const std::array<uint32_t, 256> points = code_points();
  std::string out;
  for (const char byte : bytes) {
    const uint32_t point = points[static_cast<uint8_t>(byte)];
    if (point < 0x80) {
      out += static_cast<char>(point);
    } else {
      out += static_cast<char>(0xc0 | point >> 6);
      out += static_cast<char>(0x80 | (point & 0x3f));
    }
  }
  return out;
}

std::optional<std::string> from_characters(std::string_view characters) {
  static const std::array<int16_t, 512> bytes = [] {
    std::array<int16_t, 512> table{};
    table.fill(-1);
    const std::array<uint32_t, 256> points = code_points();
    for (size_t b = 0; b < 256; ++b) table[points[b]] = static_cast<int16_t>(b);
    return table;
  }();
  std::string out;
  for (size_t i = 0; i < characters.size(); ++i) {
    uint32_t point = static_cast<uint8_t>(characters[i]);
    if (point >= 0x80) {
      if (point < 0xc2 || point > 0xc7 || i + 1 == characters.size()) return std::nullopt;
      point = (point & 0x1f) << 6 | (static_cast<uint8_t>(characters[++i]) & 0x3f);
    }
    if (bytes[point] < 0) return std::nullopt;
    out += static_cast<char>(bytes[point]);
  }
  return out;
}

Bpe Bpe::load(const std::string& folder) {
  return load((fs::path(folder) / "vocab.json").string(), (fs::path(folder) / "merges.txt").string());
}

Bpe Bpe::load(const std::string& vocabulary, const std::string& merges) {
  Bpe bpe;
  for (const std::string& token : read_vocabulary(vocabulary)) {
    WEFT_CHECK(bpe.tokens_.find(token) < 0, "bpe", "{}: \"{}\" is there twice", vocabulary, to_characters(token));
    bpe.tokens_.add(token);
  }
  bpe.set_bytes();

  const std::string text = read_whole(merges, "bpe");
  std::string_view rest = text;
  for (int64_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const size_t blank = line.find(' ');
    WEFT_CHECK(blank != std::string_view::npos && line.find(' ', blank + 1) == std::string_view::npos, "bpe",
               "{}:{}: wants two tokens and a blank between them, got \"{}\"", merges, number, line);
    const auto left = from_characters(line.substr(0, blank)), right = from_characters(line.substr(blank + 1));
    const int32_t left_id = left ? bpe.tokens_.find(*left) : -1, right_id = right ? bpe.tokens_.find(*right) : -1;
    const int32_t result = left_id >= 0 && right_id >= 0 ? bpe.tokens_.find(*left + *right) : -1;
    WEFT_CHECK(result >= 0, "bpe", "{}:{}: \"{}\" or what it makes is not in {}", merges, number, line, vocabulary);
    WEFT_CHECK(!bpe.merges_.contains(pair(left_id, right_id)), "bpe", "{}:{}: \"{}\" is there twice", merges, number,
               line);
    bpe.add_merge(left_id, right_id, result);
  }
  return bpe;
}

void Bpe::save(const std::string& folder) const {
  std::error_code error;
  fs::create_directories(folder, error);
  WEFT_CHECK(!error, "bpe", "{}: cannot be created: {}", folder, error.message());
  std::string vocabulary = "{", merges = "#version: 0.2\n";
  for (int32_t i = 0; i < tokens_.size(); ++i)
    vocabulary += fmt::format("{}{}:{}", i ? "," : "", nlohmann::json(to_characters(tokens_[i])).dump(), i);
  vocabulary += "}\n";
  for (const auto& [left, right] : order_)
    merges += to_characters(tokens_[left]) + " " + to_characters(tokens_[right]) + "\n";
  AtomicFile first((fs::path(folder) / "vocab.json").string()), second((fs::path(folder) / "merges.txt").string());
  first.write(vocabulary);
  second.write(merges);
  first.commit();
  second.commit();
}

}  // namespace weft::data
