// The file of tokens: a header with the key and the payload's size and checksum, then the words and the ids, each id in
// seven bits a byte, since most are small.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "data/bytes.h"
#include "data/review_tokens.h"
#include "tensor/atomic_file.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "weft reviews 1\n";

uint64_t checksum(std::string_view bytes) {
  return crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
}

void put_number(std::string& out, uint64_t value) {
  std::array<char, 8> bytes{};
  std::memcpy(bytes.data(), &value, bytes.size());
  out.append(bytes.data(), bytes.size());
}

void put_packed(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

/// Takes values off the front of bytes; throws where there are too few.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& path) : rest_(bytes), path_(path) {}

  std::string_view take(uint64_t n) {
    WEFT_CHECK(n <= rest_.size(), "cache", "{}: is cut off: {} bytes are left where {} should be", path_, rest_.size(),
               n);
    const std::string_view bytes = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return bytes;
  }
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  uint64_t packed() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    broken();
  }
  void check(bool good) const {
    if (!good) broken();
  }
  std::string_view rest() const { return rest_; }

 private:
  [[noreturn]] void broken() const { fail("cache", fmt::format("{}: is damaged: its values make no sense", path_)); }

  std::string_view rest_;
  const std::string& path_;
};

void put_corpus(std::string& out, const TextCorpus& corpus) {
  put_number(out, static_cast<uint64_t>(corpus.size()));
  put_number(out, corpus.ids.size());
  for (const uint8_t label : corpus.labels) out += static_cast<char>(label);
  for (size_t i = 0; i < corpus.labels.size(); ++i)
    put_packed(out, static_cast<uint64_t>(corpus.offsets[i + 1] - corpus.offsets[i]));
  for (const int32_t id : corpus.ids) put_packed(out, static_cast<uint64_t>(id));
}

std::shared_ptr<const TextCorpus> take_corpus(Reader& in, int64_t vocabulary) {
  auto corpus = std::make_shared<TextCorpus>();
  const uint64_t texts = in.number(), ids = in.number();
  in.check(texts <= in.rest().size() && ids <= in.rest().size());  // each takes a byte or more
  for (const char label : in.take(texts)) {
    in.check(label == 0 || label == 1);
    corpus->labels.push_back(static_cast<uint8_t>(label));
  }
  for (uint64_t i = 0, sum = 0; i < texts; ++i) {
    const uint64_t length = in.packed();
    in.check(length >= 1 && length <= ids - sum);
    sum += length;
    corpus->offsets.push_back(static_cast<int64_t>(sum));
  }
  in.check(static_cast<uint64_t>(corpus->offsets.back()) == ids);
  corpus->ids.resize(ids);
  for (int32_t& id : corpus->ids) {
    const uint64_t value = in.packed();
    in.check(value < static_cast<uint64_t>(vocabulary));
    id = static_cast<int32_t>(value);
  }
  return corpus;
}

}  // namespace

void save_tokens(const std::string& path, const std::string& key, const ReviewTokens& tokens) {
  std::string payload, words;
  for (int32_t i = 0; i < tokens.words.size(); ++i) {
    words += tokens.words[i];
    words += '\n';
  }
  put_number(payload, words.size());
  payload += words;
  put_corpus(payload, *tokens.train);
  put_corpus(payload, *tokens.test);
  std::string header(kMagic);
  put_number(header, key.size());
  header += key;
  put_number(header, payload.size());
  put_number(header, checksum(payload));
  AtomicFile file(path);
  file.write(header);
  file.write(payload);
  file.commit();
}

std::optional<ReviewTokens> load_tokens(const std::string& path, const std::string& key) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const std::string bytes = read_whole(path, "cache");
  Reader in(bytes, path);
  WEFT_CHECK(in.take(kMagic.size()) == kMagic, "cache", "{}: is of another kind or version", path);
  WEFT_CHECK(in.take(in.number()) == key, "cache", "{}: belongs to other data", path);
  const uint64_t size = in.number(), sum = in.number();
  WEFT_CHECK(size == in.rest().size(), "cache", "{}: is cut off: it has {} bytes of values, expected {}", path,
             in.rest().size(), size);
  WEFT_CHECK(checksum(in.rest()) == sum, "cache", "{}: is damaged: its checksum is wrong", path);

  ReviewTokens tokens;
  const std::string_view words = in.take(in.number());
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find('\n', begin), words.size());
    const int32_t next = tokens.words.size();
    in.check(tokens.words.add(words.substr(begin, end - begin)) == next);
    begin = end + 1;
  }
  const int64_t vocabulary = tokens.words.size() + Vocabulary::kFirstWord;
  tokens.train = take_corpus(in, vocabulary);
  tokens.test = take_corpus(in, vocabulary);
  in.check(in.rest().empty());
  for (const bool test : {false, true})
    for (const uint8_t label : (test ? tokens.test : tokens.train)->labels)
      tokens.counts.add({.test = test, .positive = label == 1});
  return tokens;
}

}  // namespace weft::data
