// Reviews as ids, made by all cores at once, and the file that keeps them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "data/review_files.h"
#include "data/text_dataset.h"
#include "data/word_table.h"

namespace weft::data {

/// All reviews as ids of the whole training vocabulary: word i of `words`, the most frequent first, has id i + 3. A
/// smaller vocabulary is the same ids with the larger ones taken for unknown, so that one set serves all options.
struct ReviewTokens {
  WordTable words;
  std::shared_ptr<const TextCorpus> train, test;
  ReviewCounts counts;
};

/// Reads and tokenises: a thread for each source reads (and inflates), `threads` tokenise (0: one a core). The result
/// depends on the reviews alone. Throws where a review is there twice.
ReviewTokens tokenize_reviews(std::span<const std::string> sources, int threads = 0);

/// Writes tokens under a key, whole or not at all; throws where it cannot.
void save_tokens(const std::string& path, const std::string& key, const ReviewTokens& tokens);
/// The tokens of a file, nothing where there is no file. A file of another key, one that is cut off, or one whose
/// checksum is wrong throws, with what is wrong.
std::optional<ReviewTokens> load_tokens(const std::string& path, const std::string& key);

}  // namespace weft::data
