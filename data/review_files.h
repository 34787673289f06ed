// The reviews of the Large Movie Review Dataset where they lie: the tree that its authors made, or archives of it, read
// as they are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace weft::data {

/// A review, its place in the tree first: train or test, neg or pos, ID_RATING.txt.
struct Review {
  bool test = false, positive = false;
  int64_t id = 0;         ///< the number that the file name starts with; the largest where it starts with none
  std::string file = {};  ///< "0_9.txt"
  std::string path = {};  ///< where the text is still to be read; empty: it is in `text`
  std::string text = {};

  /// The order of samples, which no order of reading changes.
  auto key() const { return std::tie(test, positive, id, file); }
};

/// How many reviews there are of each kind.
struct ReviewCounts {
  int64_t train_negative = 0, train_positive = 0, test_negative = 0, test_positive = 0;
  void add(const Review& review);
  int64_t total() const { return train_negative + train_positive + test_negative + test_positive; }
  friend bool operator==(const ReviewCounts&, const ReviewCounts&) = default;
};

/// What holds the reviews of `folder`, itself or in its aclImdb/: `aclImdb-train.tar.gz` and `aclImdb-test.tar.gz`,
/// else `aclImdb_v1.tar.gz`, else the tree's own folder; also where half of it is missing. `folder` may be an archive.
/// Empty where there is nothing of the kind.
std::vector<std::string> review_sources(const std::string& folder);

/// Changes where the reviews may have changed: the SHA-256 of archives, of a tree all names, sizes and times.
std::string fingerprint(std::span<const std::string> sources);

/// Calls `f` with the reviews of one source in portions, in any order; archives give the texts, a tree gives paths.
/// `f` returns false to stop. What is no review is passed over.
void read_reviews(const std::string& source, const std::function<bool(std::vector<Review>)>& f);

/// Counts the reviews of a source without keeping a text; of an archive, that it can be read to its end is checked,
/// too.
ReviewCounts count_reviews(const std::string& source);

}  // namespace weft::data
