// Batches of texts.
#include "data/text_dataset.h"

#include <algorithm>

#include "tensor/error.h"

namespace weft::data {

void TextCorpus::add(std::span<const int32_t> text, bool label) {
  ids.insert(ids.end(), text.begin(), text.end());
  offsets.push_back(static_cast<int64_t>(ids.size()));
  labels.push_back(label);
}

TextDataset::TextDataset(std::shared_ptr<const TextCorpus> corpus, const TextOptions& options)
    : corpus_(std::move(corpus)), options_(options) {
  WEFT_CHECK(corpus_ != nullptr && corpus_->offsets.size() == corpus_->labels.size() + 1, "text dataset",
             "the corpus wants an offset more than it has labels");
  WEFT_CHECK(options.max_length >= 1, "text dataset", "max_length must be at least 1, got {}", options.max_length);
  WEFT_CHECK(options.vocabulary >= Vocabulary::kFirstWord, "text dataset",
             "the vocabulary counts the {} special ids, got {}", Vocabulary::kFirstWord, options.vocabulary);
  WEFT_CHECK(options.multiple >= 1, "text dataset", "multiple must be at least 1, got {}", options.multiple);
}

TextDataset::TextDataset(std::span<const std::string> texts, std::span<const int64_t> labels,
                         const Vocabulary& vocabulary, TextOptions options)
    : options_(options) {
  WEFT_CHECK(texts.size() == labels.size(), "text dataset", "{} texts have {} labels", texts.size(), labels.size());
  auto corpus = std::make_shared<TextCorpus>();
  for (size_t i = 0; i < texts.size(); ++i) {
    WEFT_CHECK(labels[i] == 0 || labels[i] == 1, "text dataset", "label {} is {}, expected 0 or 1", i, labels[i]);
    corpus->add(vocabulary.ids(texts[i]), labels[i] == 1);
  }
  options.vocabulary = vocabulary.size();
  *this = TextDataset(std::move(corpus), options);
}

int64_t TextDataset::length(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  return std::min(corpus_->offsets[i + 1] - corpus_->offsets[i], options_.max_length);
}

int64_t TextDataset::count(int64_t label) const {
  return std::count(corpus_->labels.begin(), corpus_->labels.end(), static_cast<uint8_t>(label));
}

std::vector<int64_t> TextDataset::lengths() const {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < size(); ++i) all.push_back(length(i));
  return all;
}

std::vector<int64_t> TextDataset::lengths(std::span<const int64_t> indices) const {
  std::vector<int64_t> some;
  for (const int64_t i : indices) {
    check_index(i);
    some.push_back(length(i));
  }
  return some;
}

void TextDataset::check_index(int64_t index) const {
  WEFT_CHECK(index >= 0 && index < size(), "dataset", "index {} is outside of the {} samples", index, size());
}

Batch TextDataset::batch(std::span<const int64_t> indices, const Epoch&) const {
  int64_t longest = options_.pad_to_longest ? 1 : options_.max_length;
  for (const int64_t i : indices) {
    check_index(i);
    longest = std::max(longest, length(i));
  }
  if (options_.pad_to_longest) longest = (longest + options_.multiple - 1) / options_.multiple * options_.multiple;
  const auto n = static_cast<int64_t>(indices.size());
  Batch batch{empty({n, longest}, i32), empty({n})};
  auto* x = batch.x.data<int32_t>();
  auto* y = batch.y.data<float>();
  const auto vocabulary = static_cast<int32_t>(std::min<int64_t>(options_.vocabulary, INT32_MAX));
  for (const int64_t i : indices) {
    const int32_t* end = corpus_->ids.data() + corpus_->offsets[static_cast<size_t>(i) + 1];
    const int64_t kept = length(i);
    x = std::fill_n(x, longest - kept, Vocabulary::kPad);
    x = std::transform(end - kept, end, x, [=](int32_t id) { return id < vocabulary ? id : Vocabulary::kUnknown; });
    *y++ = corpus_->labels[static_cast<size_t>(i)];
  }
  return batch;
}

}  // namespace weft::data
