// The Large Movie Review Dataset (Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011): 25,000 film
// reviews for training and 25,000 for testing, half of each positive.
#pragma once

#include <string>
#include <vector>

#include "data/download.h"
#include "data/review_files.h"
#include "data/text_dataset.h"

namespace weft::data {

/// `auto reviews = data::imdb(folder);`. Samples stand sorted by class and number, negative ones first: shuffle.
struct Imdb {
  TextDataset train, test;
  Vocabulary vocabulary;  ///< of the training split alone
  ReviewCounts counts;
  bool cached = false;  ///< whether the ids came from the cache

  /// "train 12500 negative, 12500 positive; test …", and that it is not the whole set where it is not.
  std::string report() const;
};

struct ImdbOptions {
  TextOptions text = {};
  /// The folder of the file that keeps the ids; empty: `cache_folder()`/imdb.
  std::string cache = {};
  bool use_cache = true;
  int threads = 0;  ///< that tokenise; 0: one a core
};

/// Reads the reviews of `folder` (`review_sources` says which files), as they are: nothing is unpacked to disk. Ids are
/// kept in a file in the cache, keyed by the data's fingerprint and the cleaning; it holds whole texts and all words,
/// so other text options read the same file. A damaged file is made anew with a line on standard error; one that cannot
/// be written is a line, too. Throws, with what was found and expected, where a class is missing or has less than half
/// as many reviews as the other one.
Imdb imdb(const std::string& folder, const ImdbOptions& options = {});

/// Where `find_imdb` looks beyond the folders that the user names.
struct ImdbSources {
  std::vector<std::string> urls = {"http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"};
  int64_t reviews_of_a_class = 12500;  ///< what a download must have four times to be kept: no checksum is published
};

/// The folder to give to `imdb`. One that is given must hold reviews, itself or in its imdb/. Where it is empty:
/// $WEFT_DATA (itself or its imdb/), the cache, and a download into the cache. Where all that fails it throws NoData:
/// what was tried, and what to do.
std::string find_imdb(const std::string& folder = "", const ImdbSources& sources = {});

}  // namespace weft::data
