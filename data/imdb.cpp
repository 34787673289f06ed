// IMDB: where it is, whether it is whole, and its cache.
#include "data/imdb.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "data/download.h"
#include "data/review_tokens.h"
#include "data/sha256.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kWhole = 12500;  // reviews of a class in the original
constexpr const char* kExpected =
    "aclImdb_v1.tar.gz, or aclImdb-train.tar.gz and aclImdb-test.tar.gz, or the folder aclImdb with train/pos, "
    "train/neg, test/pos, test/neg";

std::string in_words(const ReviewCounts& c) {
  return fmt::format("train {} negative, {} positive; test {} negative, {} positive", c.train_negative,
                     c.train_positive, c.test_negative, c.test_positive);
}

std::string joined(std::span<const std::string> sources) {
  std::string text;
  for (const std::string& source : sources) text += (text.empty() ? "" : " and ") + source;
  return text;
}

/// A broken download or half an unpacking shows here, not as a strange accuracy.
void check_whole(const ReviewCounts& c, std::span<const std::string> sources) {
  WEFT_CHECK(c.total() > 0, "imdb", "{}: holds no reviews (…/train/pos/ID_RATING.txt and so on)", joined(sources));
  const auto fits = [](int64_t a, int64_t b) { return a > 0 && b > 0 && a <= 2 * b && b <= 2 * a; };
  WEFT_CHECK(fits(c.train_negative, c.train_positive) && fits(c.test_negative, c.test_positive), "imdb",
             "{}: is a part of the data set: {}; expected reviews of both classes in train and test, about as many of "
             "each (the whole set has {} of each). {}",
             joined(sources), in_words(c), kWhole,
             sources.size() == 1 && sources[0].find("aclImdb-t") != std::string::npos
                 ? "The other one of aclImdb-train.tar.gz and aclImdb-test.tar.gz is missing"
                 : "Was a download or an unpacking cut off?");
}

/// Where the ids of this data are kept; nothing where there is no place, which is told.
std::optional<std::string> cache_file(const ImdbOptions& options, const std::string& key) {
  if (!options.use_cache) return std::nullopt;
  try {
    const fs::path folder = options.cache.empty() ? fs::path(cache_folder()) / "imdb" : fs::path(options.cache);
    Sha256 sum;
    sum.update({reinterpret_cast<const uint8_t*>(key.data()), key.size()});
    return (folder / ("tokens-" + sum.hex().substr(0, 16) + ".bin")).string();
  } catch (const Error& error) {
    fmt::print(stderr, "warning: {}; the reviews are tokenised each time\n", error.what());
    return std::nullopt;
  }
}

std::optional<ReviewTokens> from_cache(const std::optional<std::string>& path, const std::string& key) {
  if (!path) return std::nullopt;
  try {
    return load_tokens(*path, key);
  } catch (const Error& error) {
    fmt::print(stderr, "warning: {}; it is made anew\n", error.what());
    return std::nullopt;
  }
}

void to_cache(const std::optional<std::string>& path, const std::string& key, const ReviewTokens& tokens) {
  if (!path) return;
  try {
    std::error_code ignored;  // where there is no folder, the file says so
    fs::create_directories(fs::path(*path).parent_path(), ignored);
    save_tokens(*path, key, tokens);
  } catch (const Error& error) {
    fmt::print(stderr, "warning: {}; the reviews are tokenised each time\n", error.what());
  }
}

/// `folder` or its imdb/, whichever has reviews.
std::optional<std::string> folder_with_imdb(const std::string& folder) {
  for (const std::string& candidate : {folder, (fs::path(folder) / "imdb").string()})
    if (!review_sources(candidate).empty()) return candidate;
  return std::nullopt;
}

/// Loads the original archive; what went wrong is added to `tried`.
bool download_imdb(const std::string& folder, const ImdbSources& sources, std::string& tried) {
  const std::string path = (fs::path(folder) / "aclImdb_v1.tar.gz").string();
  for (const std::string& url : sources.urls) {
    try {
      download(url, path, {.silent_seconds = 4});
      ReviewCounts counts;
      try {
        counts = count_reviews(path);
      } catch (const Error&) {
        fs::remove(path);
        throw;
      }
      const int64_t n = sources.reviews_of_a_class;
      if (counts == ReviewCounts{n, n, n, n}) return true;
      fs::remove(path);
      tried += fmt::format("\n  {}: has {}, expected {} of each; nothing was kept", url, in_words(counts), n);
    } catch (const Error& error) {
      tried += fmt::format("\n  {}", error.what());
    }
  }
  return false;
}

}  // namespace

std::string Imdb::report() const {
  return in_words(counts) + (counts == ReviewCounts{kWhole, kWhole, kWhole, kWhole}
                                 ? ""
                                 : fmt::format(" (not the whole set, which has {} of each)", kWhole));
}

Imdb imdb(const std::string& folder, const ImdbOptions& options) {
  const std::vector<std::string> sources = review_sources(folder);
  WEFT_CHECK(!sources.empty(), "imdb", "{}: has none of {}", folder, kExpected);
  WEFT_CHECK(options.text.vocabulary >= Vocabulary::kFirstWord, "imdb",
             "the vocabulary counts the {} special ids, got {}", Vocabulary::kFirstWord, options.text.vocabulary);
  const std::string key = options.use_cache ? fmt::format("cleaning {}\n{}", kCleaning, fingerprint(sources)) : "";
  const std::optional<std::string> cache = cache_file(options, key);
  std::optional<ReviewTokens> tokens = from_cache(cache, key);
  const bool cached = tokens.has_value();
  if (!cached) {
    tokens = tokenize_reviews(sources, options.threads);
    check_whole(tokens->counts, sources);
    to_cache(cache, key, *tokens);
  }
  const auto kept =
      static_cast<int32_t>(std::min<int64_t>(options.text.vocabulary - Vocabulary::kFirstWord, tokens->words.size()));
  std::vector<std::string_view> words;
  for (int32_t i = 0; i < kept; ++i) words.push_back(tokens->words[i]);
  return {TextDataset(tokens->train, options.text), TextDataset(tokens->test, options.text), Vocabulary(words),
          tokens->counts, cached};
}

std::string find_imdb(const std::string& folder, const ImdbSources& sources) {
  if (!folder.empty()) {
    const auto found = folder_with_imdb(folder);
    WEFT_CHECK(found, "imdb", "neither {} nor {}/imdb has {}", folder, folder, kExpected);
    return *found;
  }
  std::string tried;
  if (const char* data = std::getenv("WEFT_DATA"); data && *data) {
    if (const auto found = folder_with_imdb(data)) return *found;
    tried += fmt::format("\n  WEFT_DATA: not in {} nor {}/imdb", data, data);
  }
  const std::string cache = (fs::path(cache_folder()) / "imdb").string();
  if (!review_sources(cache).empty()) return cache;
  tried += fmt::format("\n  cache: not in {}", cache);
  if (download_imdb(cache, sources, tried)) return cache;
  throw NoData(
      fmt::format("[imdb] no data was found:{}\n"
                  "Name a folder that has it (--data, WEFT_DATA): {}",
                  tried, kExpected));
}

}  // namespace weft::data
