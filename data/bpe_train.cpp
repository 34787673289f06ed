// Learning merges. Each different piece is kept once with its count; a merge touches only the pieces that have its
// pair.
#include <algorithm>
#include <queue>

#include "data/bpe.h"
#include "data/byte_characters.h"
#include "data/pieces.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

struct Word {
  std::vector<int32_t> ids;
  int64_t count;
};

struct PairUse {
  int64_t count = 0;
  std::vector<size_t> words;  // that have the pair, or had it
};

/// The most frequent pair comes first, then the one with the smaller ids.
struct Candidate {
  int64_t count;
  uint64_t pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

/// The different pieces of the texts.
std::vector<Word> count_pieces(std::span<const std::string> texts, const std::vector<int32_t>& byte_ids) {
  WordTable table;
  std::vector<int64_t> counts;
  for (const std::string& text : texts)
    for (std::string_view rest = text; !rest.empty();) {
      const size_t n = next_piece(rest);
      const auto number = static_cast<size_t>(table.add(rest.substr(0, n)));
      if (number == counts.size()) counts.push_back(0);
      ++counts[number];
      rest.remove_prefix(n);
    }
  std::vector<Word> words;
  for (int32_t i = 0; i < table.size(); ++i) {
    Word word{{}, counts[static_cast<size_t>(i)]};
    for (const char byte : table[i]) word.ids.push_back(byte_ids[static_cast<uint8_t>(byte)]);
    words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

Bpe Bpe::train(std::span<const std::string> texts, const BpeOptions& options) {
  const auto special = static_cast<int64_t>(options.special.size());
  WEFT_CHECK(options.vocabulary >= 256 + special, "bpe",
             "the vocabulary counts 256 bytes and {} special tokens, got {}", special, options.vocabulary);
  Bpe bpe;
  for (const uint8_t byte : kBytesInOrder) {
    const char character = static_cast<char>(byte);
    bpe.tokens_.add({&character, 1});
  }
  bpe.set_bytes();
  std::vector<Word> words = count_pieces(texts, bpe.bytes_);

  std::unordered_map<uint64_t, PairUse> uses;
  std::vector<uint64_t> grown;  // pairs that became more frequent by the last merge
  const auto change = [&](int32_t left, int32_t right, int64_t by, size_t word) {
    const uint64_t key = pair(left, right);
    PairUse& use = uses[key];
    use.count += by;
    if (by < 0) return;
    if (use.words.empty() || use.words.back() != word) use.words.push_back(word);
    grown.push_back(key);
  };
  for (size_t w = 0; w < words.size(); ++w)
    for (size_t i = 0; i + 1 < words[w].ids.size(); ++i)
      change(words[w].ids[i], words[w].ids[i + 1], words[w].count, w);

  std::priority_queue<Candidate> candidates;
  const auto offer_grown = [&] {
    std::sort(grown.begin(), grown.end());
    grown.erase(std::unique(grown.begin(), grown.end()), grown.end());
    for (const uint64_t key : grown)
      if (const int64_t count = uses[key].count; count > 0) candidates.push({count, key});
    grown.clear();
  };
  offer_grown();

  while (bpe.size() < options.vocabulary - special && !candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    const auto found = uses.find(best.pair);
    if (found == uses.end()) continue;
    if (found->second.count != best.count) {  // it became rarer since it was offered
      if (found->second.count > 0 && found->second.count < best.count)
        candidates.push({found->second.count, best.pair});
      continue;
    }
    if (best.count < options.min_count) break;
    const auto left = static_cast<int32_t>(best.pair >> 32), right = static_cast<int32_t>(best.pair & 0xffffffff);
    const int32_t merged = bpe.tokens_.add(std::string(bpe.tokens_[left]) + std::string(bpe.tokens_[right]));
    if (!bpe.merges_.contains(best.pair)) bpe.add_merge(left, right, merged);
    const std::vector<size_t> holders = std::move(found->second.words);
    for (const size_t w : holders) {
      auto& [ids, count] = words[w];
      size_t kept = 0;
      for (size_t i = 0; i < ids.size(); ++kept) {
        if (i + 1 == ids.size() || ids[i] != left || ids[i + 1] != right) {
          ids[kept] = ids[i++];
          continue;
        }
        if (kept > 0) {
          change(ids[kept - 1], left, -count, w);
          change(ids[kept - 1], merged, count, w);
        }
        i += 2;
        if (i < ids.size()) {
          change(right, ids[i], -count, w);
          change(merged, ids[i], count, w);
        }
        ids[kept] = merged;
      }
      ids.resize(kept);
    }
    uses.erase(best.pair);
    offer_grown();
  }
  for (const std::string& token : options.special) {
    WEFT_CHECK(!token.empty() && !bpe.id(token), "bpe", "\"{}\" cannot be a special token: {}", token,
               token.empty() ? "it is empty" : "texts give it, too");
    bpe.tokens_.add(token);
  }
  return bpe;
}

}  // namespace weft::data
