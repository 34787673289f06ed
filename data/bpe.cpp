// Encoding and decoding. Within a piece the neighbours whose merge was learnt first are merged first, from a heap, so
// that a piece of any length takes n log n.
#include "data/bpe.h"

#include <algorithm>
#include <queue>

#include "data/pieces.h"
#include "tensor/error.h"

namespace weft::data {

/// Merges the bytes of pieces; keeps its memory from one to the next.
class Bpe::Merger {
 public:
  explicit Merger(const Bpe& bpe) : bpe_(bpe) {}

  void run(std::string_view piece, std::vector<int32_t>& out) {
    symbols_.clear();
    const auto n = static_cast<int32_t>(piece.size());
    for (int32_t i = 0; i < n; ++i)
      symbols_.push_back(
          {bpe_.bytes_[static_cast<uint8_t>(piece[static_cast<size_t>(i)])], i - 1, i + 1 < n ? i + 1 : -1});
    heap_.clear();
    for (int32_t i = 0; i + 1 < n; ++i) offer(i);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end());
      const Offer best = heap_.back();
      heap_.pop_back();
      Symbol& left = symbols_[static_cast<size_t>(best.at)];
      if (left.id < 0 || left.next < 0) continue;
      Symbol& right = symbols_[static_cast<size_t>(left.next)];
      if (pair(left.id, right.id) != best.pair) continue;  // one of them was merged since
      left.id = best.result;
      right.id = -1;
      left.next = right.next;
      if (left.next >= 0) {
        symbols_[static_cast<size_t>(left.next)].previous = best.at;
        offer(best.at);
      }
      if (left.previous >= 0) offer(left.previous);
    }
    for (int32_t i = 0; i >= 0; i = symbols_[static_cast<size_t>(i)].next)
      out.push_back(symbols_[static_cast<size_t>(i)].id);
  }

 private:
  struct Symbol {
    int32_t id, previous, next;  // -1: none, or merged into the one before
  };
  struct Offer {
    int32_t rank, at, result;
    uint64_t pair;
    bool operator<(const Offer& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };

  void offer(int32_t at) {
    const Symbol& left = symbols_[static_cast<size_t>(at)];
    const uint64_t key = pair(left.id, symbols_[static_cast<size_t>(left.next)].id);
    const auto found = bpe_.merges_.find(key);
    if (found == bpe_.merges_.end()) return;
    heap_.push_back({found->second.rank, at, found->second.result, key});
    std::push_heap(heap_.begin(), heap_.end());
  }

  const Bpe& bpe_;
  std::vector<Symbol> symbols_;
  std::vector<Offer> heap_;
};

std::vector<int32_t> Bpe::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  WEFT_CHECK(!bytes_.empty() || text.empty(), "bpe", "there is no vocabulary: train or load one");
  Merger merger(*this);
  while (!text.empty()) {
    const size_t n = next_piece(text);
    WEFT_CHECK(n <= INT32_MAX, "bpe", "a piece of {} bytes is too long", n);
    merger.run(text.substr(0, n), ids);
    text.remove_prefix(n);
  }
  return ids;
}

std::string Bpe::decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) text += token(id);
  return text;
}

std::string_view Bpe::token(int64_t id) const {
  WEFT_CHECK(id >= 0 && id < size(), "bpe", "id {} is outside of the {} tokens", id, size());
  return tokens_[static_cast<int32_t>(id)];
}

std::optional<int32_t> Bpe::id(std::string_view token) const {
  const int32_t found = tokens_.find(token);
  return found < 0 ? std::nullopt : std::optional(found);
}

/// Finds the token of each byte; throws where one has none.
void Bpe::set_bytes() {
  for (int byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(byte);
    bytes_.push_back(tokens_.find({&character, 1}));
    WEFT_CHECK(bytes_.back() >= 0, "bpe", "the vocabulary has no token for the byte 0x{:02x}", byte);
  }
}

void Bpe::add_merge(int32_t left, int32_t right, int32_t result) {
  merges_.emplace(pair(left, right), Merge{static_cast<int32_t>(order_.size()), result});
  order_.emplace_back(left, right);
}

}  // namespace weft::data
