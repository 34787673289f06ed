// Byte-level byte-pair encoding (Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", ACL
// 2016; over bytes as GPT-2 has it), with GPT-2's files vocab.json and merges.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/word_table.h"

namespace weft::data {

struct BpeOptions {
  int64_t vocabulary = 50257;                            ///< tokens at most: 256 bytes, merges, and special ones
  int64_t min_count = 2;                                 ///< a pair seen less often is not merged
  std::vector<std::string> special = {"<|endoftext|>"};  ///< the last ids; `encode` never gives them
};

class Bpe {
 public:
  /// Learns merges from texts: again and again the most frequent pair of neighbours within a piece (data/pieces.h)
  /// becomes a token; among equals the pair with the smaller ids, so that texts in any order give the same tokens. The
  /// first 256 ids are the bytes in GPT-2's order.
  static Bpe train(std::span<const std::string> texts, const BpeOptions& options = {});

  /// Reads `folder`/vocab.json and `folder`/merges.txt. Throws where a file is damaged, a byte has no token, an id is
  /// missing or there twice, or a merge is not in the vocabulary, with its line.
  static Bpe load(const std::string& folder);
  static Bpe load(const std::string& vocabulary, const std::string& merges);
  /// Writes both files; other programs read them.
  void save(const std::string& folder) const;

  /// The tokens of any bytes; text that looks like a special token is text.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The bytes of tokens: of what `encode` gave exactly what it was given.
  std::string decode(std::span<const int32_t> ids) const;

  /// The number of ids.
  int64_t size() const { return tokens_.size(); }
  /// The bytes of a token.
  std::string_view token(int64_t id) const;
  /// The id of a token, such as "<|endoftext|>".
  std::optional<int32_t> id(std::string_view token) const;

 private:
  struct Merge {
    int32_t rank, result;
  };
  static uint64_t pair(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  class Merger;
  void set_bytes();
  void add_merge(int32_t left, int32_t right, int32_t result);

  WordTable tokens_;                                // bytes of each id
  std::vector<int32_t> bytes_;                      // the token of each byte
  std::vector<std::pair<int32_t, int32_t>> order_;  // merges, the first learnt first
  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace weft::data
