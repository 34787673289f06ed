// Texts as a dataset: ids of any lengths in one array, padded when a batch is made.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/dataset.h"
#include "data/text.h"

namespace weft::data {

struct TextOptions {
  int64_t vocabulary = 20000;  ///< ids, the three special ones included; words beyond become `Vocabulary::kUnknown`
  int64_t max_length = 400;    ///< of a longer text the LAST ids stay
  /// Batches as long as their longest text, rounded up to `multiple`, rather than all of `max_length`: with `bucketed`
  /// (data/sampler.h) far less padding. The shape then changes from batch to batch.
  bool pad_to_longest = false;
  int64_t multiple = 8;
};

/// Ids of texts, and a label of each; what data sets share.
struct TextCorpus {
  std::vector<int32_t> ids;         ///< of all texts; each text has at least one
  std::vector<int64_t> offsets{0};  ///< text i is ids[offsets[i] … offsets[i + 1])
  std::vector<uint8_t> labels;      ///< 0 or 1

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  void add(std::span<const int32_t> text, bool label);
};

/// A batch is x i32 [n, length], padded with `Vocabulary::kPad` on the LEFT, and y f32 [n], 0 or 1, as bce_with_logits
/// wants it for logits [n]. i32 halves what is copied to a device, and embeddings take it.
class TextDataset : public Dataset {
 public:
  TextDataset(std::shared_ptr<const TextCorpus> corpus, const TextOptions& options = {});
  /// Encodes `texts` with a vocabulary of one's own; the options' vocabulary does not count.
  TextDataset(std::span<const std::string> texts, std::span<const int64_t> labels, const Vocabulary& vocabulary,
              TextOptions options = {});
  /// The same texts (shared, not copied) under other options.
  TextDataset with(const TextOptions& options) const { return {corpus_, options}; }

  int64_t size() const override { return corpus_->size(); }
  Batch batch(std::span<const int64_t> indices, const Epoch& epoch) const override;

  /// 0 or 1.
  int64_t label(int64_t index) const { return corpus_->labels[static_cast<size_t>(index)]; }
  /// Of all samples, in order.
  std::vector<int64_t> labels() const { return {corpus_->labels.begin(), corpus_->labels.end()}; }
  /// How many samples have this label.
  int64_t count(int64_t label) const;
  /// Ids of each sample before padding, at most `max_length`: what `bucketed` wants.
  std::vector<int64_t> lengths() const;
  /// Of these samples: `set.lengths(part.indices())` for a Subset.
  std::vector<int64_t> lengths(std::span<const int64_t> indices) const;
  const TextOptions& options() const { return options_; }
  const TextCorpus& corpus() const { return *corpus_; }

 private:
  int64_t length(int64_t index) const;
  void check_index(int64_t index) const;

  std::shared_ptr<const TextCorpus> corpus_;
  TextOptions options_;
};

}  // namespace weft::data
