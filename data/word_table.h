// Words and their numbers, 0, 1, … in the order in which they came. Looking a word up allocates nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::data {

class WordTable {
 public:
  /// The word's number; it gets the next one where it is new.
  int32_t add(std::string_view word);
  /// The word's number, -1 where it has none.
  int32_t find(std::string_view word) const;
  /// Valid until the next `add`.
  std::string_view operator[](int32_t number) const {
    const auto i = static_cast<size_t>(number);
    return {characters_.data() + ends_[i], ends_[i + 1] - ends_[i]};
  }
  int32_t size() const { return static_cast<int32_t>(ends_.size() - 1); }

 private:
  struct Slot {
    uint32_t hash = 0;
    int32_t number = -1;
  };
  size_t slot_of(std::string_view word, uint32_t hash) const;

  std::string characters_;
  std::vector<size_t> ends_{0};
  std::vector<Slot> slots_ = std::vector<Slot>(1024);  // a power of two, at most half of them full
};

}  // namespace weft::data
