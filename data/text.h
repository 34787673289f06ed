// From a text to word ids: cleaning, the vocabulary, and the fixed length that a classifier reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/word_table.h"
#include "tensor/tensor.h"

namespace weft::data {

/// Changes whenever `clean` gives other words, so that what was made of them is made anew.
constexpr int kCleaning = 1;

/// The words of a text, each followed by one blank. Letters are lower case (ASCII and Latin-1; letters beyond stay as
/// they are). Words are runs of letters, digits and other characters of UTF-8 that are no punctuation; bytes that are
/// no UTF-8 count as letters. Apostrophes are left out, so "don't" is "dont"; all other punctuation separates, so
/// "well-made" is two words and "10/10" too, and so do tags without attributes, `<br />` above all.
std::string clean(std::string_view text);
/// The same into `out`, whose memory is used again.
void clean(std::string_view text, std::string& out);

/// Calls f(word) for each word of a cleaned text.
template <class F>
void for_each_word(std::string_view cleaned, F&& f) {
  for (size_t begin = 0, end; (end = cleaned.find(' ', begin)) != std::string_view::npos; begin = end + 1)
    f(cleaned.substr(begin, end - begin));
}

/// The numbers of the words, the most frequent first, equal counts in alphabetical order (of bytes). Words with a count
/// of 0 are left out.
std::vector<int32_t> by_frequency(const WordTable& words, std::span<const int64_t> counts);

/// Words and their ids: 0 is padding, 1 the start of a text, 2 a word that is not in the vocabulary; words from 3 on.
class Vocabulary {
 public:
  static constexpr int32_t kPad = 0, kStart = 1, kUnknown = 2, kFirstWord = 3;

  /// No words.
  Vocabulary() = default;
  /// `words[i]` gets id i + 3. Throws for a word twice and for one that is empty or has a line break.
  explicit Vocabulary(std::span<const std::string_view> words);
  /// The most frequent words of the texts (`by_frequency`), at most `size` ids with the three special ones.
  static Vocabulary build(std::span<const std::string> texts, int64_t size);

  /// The number of ids, special ones included.
  int64_t size() const { return words_.size() + kFirstWord; }
  /// Of a word as `clean` gives it; allocates nothing.
  int32_t id(std::string_view word) const {
    const int32_t number = words_.find(word);
    return number < 0 ? kUnknown : number + kFirstWord;
  }
  /// The word of an id; "<pad>", "<start>" and "<unknown>" for the special ones.
  std::string_view word(int64_t id) const;

  /// The start id, then an id for each word.
  std::vector<int32_t> ids(std::string_view text) const;
  /// `ids` as exactly `max_length` ids: the LAST ones of a longer text (so the start id stays with texts that fit
  /// alone), padding on the LEFT of a shorter one. A text without words is the start id, so no length is ever 0.
  std::vector<int32_t> encode(std::string_view text, int64_t max_length) const;

  /// The words as u8 [bytes], a line each, to be saved beside a model's weights under a name of its own:
  /// `save(path, {…, {"vocabulary", vocabulary.to_tensor()}})`.
  Tensor to_tensor() const;
  /// The vocabulary that `to_tensor` gave.
  static Vocabulary from_tensor(const Tensor& lines);

 private:
  WordTable words_;
};

}  // namespace weft::data
