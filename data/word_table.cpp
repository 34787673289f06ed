// A hash table with open addressing; the words' characters stand one after another in a single string.
#include "data/word_table.h"

#include <utility>

#include "tensor/error.h"

namespace weft::data {
namespace {

/// FNV-1a, and its upper bits folded in, since the table takes the lower ones.
uint32_t hash_of(std::string_view word) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : word) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace

/// Where the word is, or the free slot where it would be.
size_t WordTable::slot_of(std::string_view word, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.number < 0 || (slot.hash == hash && (*this)[slot.number] == word)) return i;
  }
}

int32_t WordTable::find(std::string_view word) const { return slots_[slot_of(word, hash_of(word))].number; }

int32_t WordTable::add(std::string_view word) {
  const uint32_t hash = hash_of(word);
  Slot& slot = slots_[slot_of(word, hash)];
  if (slot.number >= 0) return slot.number;
  WEFT_CHECK(size() < INT32_MAX / 4, "vocabulary", "there are more than {} different words", size());
  const int32_t number = size();
  slot = {hash, number};
  characters_ += word;
  ends_.push_back(characters_.size());
  if (ends_.size() * 2 > slots_.size()) {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
    for (const Slot& full : old)
      if (full.number >= 0) slots_[slot_of((*this)[full.number], full.hash)] = full;
  }
  return number;
}

}  // namespace weft::data
