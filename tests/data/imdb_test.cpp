// IMDB: trees and archives give the same samples on any number of threads; half a data set is refused; the cache is
// believed only while it is whole and belongs to the data (field case 33).
#include "data/imdb.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "data/review_tokens.h"
#include "data/sample_reviews.h"
#include "tests/data/files.h"
#include "tests/expect_error.h"
#include "tests/variable.h"

namespace weft::data {
namespace {

using namespace testing_files;
using Files = std::vector<std::pair<std::string, std::string>>;
using Ids = std::vector<int32_t>;

/// Two reviews of each kind; in no order. Words by frequency: film 3, bad 2, good 2, then dull, fine.
const Files kReviews{{"train/pos/10_9.txt", "A good FILM"},
                     {"train/neg/0_1.txt", "bad<br /><br />bad film a"},
                     {"train/pos/2_7.txt", "good, fine film"},
                     {"train/neg/1_4.txt", "<br /><br />"},
                     {"test/pos/0_8.txt", "fine unseen"},
                     {"test/neg/0_2.txt", "a dull film"},
                     {"test/pos/1_8.txt", "good"},
                     {"test/neg/1_2.txt", "bad"}};

Files only(const std::string& part) {
  Files some;
  for (const auto& [name, text] : kReviews)
    if (name.find(part) != std::string::npos) some.emplace_back(name, text);
  return some;
}

std::string archive(const Files& files) {
  std::string bytes = tar_entry("aclImdb/README", "not a review") + tar_entry("aclImdb/train/urls_pos.txt", "http") +
                      tar_entry("aclImdb/train/unsup/0_0.txt", "no label") +
                      tar_entry("aclImdb/train/pos/._0_9.txt", "x");
  for (const auto& [name, text] : files) bytes += tar_entry("aclImdb/" + name, text);
  return bytes + tar_end;
}

void write_tree(const std::string& folder, const Files& files) {
  for (const auto& [name, text] : files) {
    fs::create_directories(fs::path(folder + "/" + name).parent_path());
    write(folder + "/" + name, text);
  }
}

const ImdbOptions kNoCache{.text = {.max_length = 6}, .use_cache = false};

Ids ids_of(const TextDataset& set) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < set.size(); ++i) all.push_back(i);
  return set.batch(all, {}).x.to_vector<int32_t>();
}

TEST(Imdb, TreesAndArchivesAreReadAsTheyAre) {
  const Folder folder;
  std::vector<std::string> places;
  for (const char* name : {"tree", "bare", "whole", "plain", "halves"}) {
    places.push_back(folder / name);
    fs::create_directory(places.back());
  }
  write_tree(folder / "tree/aclImdb", kReviews);
  write_tree(folder / "bare", kReviews);
  write(folder / "whole/aclImdb_v1.tar.gz", gzip(archive(kReviews)));
  Files reversed = kReviews;
  std::reverse(reversed.begin(), reversed.end());
  write(folder / "plain/aclImdb_v1.tar", archive(reversed));
  write(folder / "halves/aclImdb-train.tar.gz", gzip(archive(only("train"))));
  write(folder / "halves/aclImdb-test.tar.gz", gzip(archive(only("test"))));
  places.push_back(folder / "plain/aclImdb_v1.tar");  // an archive itself
  for (const std::string& place : places) {
    for (const int threads : {1, 3}) {
      ImdbOptions options = kNoCache;
      options.threads = threads;
      const Imdb reviews = imdb(place, options);
      EXPECT_EQ(reviews.counts, (ReviewCounts{2, 2, 2, 2})) << place;
      EXPECT_EQ(reviews.train.labels(), (std::vector<int64_t>{0, 0, 1, 1}));
      // film a bad good fine: 3 to 7; the training reviews 0_1, 1_4, 2_7, 10_9.
      EXPECT_EQ(reviews.vocabulary.size(), 8);
      EXPECT_EQ(ids_of(reviews.train), (Ids{0, 1, 5, 5, 3, 4, 0, 0, 0, 0, 0, 1,  //
                                            0, 0, 1, 6, 7, 3, 0, 0, 1, 4, 6, 3}))
          << place << " with " << threads << " threads";
      EXPECT_EQ(ids_of(reviews.test), (Ids{0, 0, 1, 4, 2, 3, 0, 0, 0, 0, 1, 5,  //
                                           0, 0, 0, 1, 7, 2, 0, 0, 0, 0, 1, 6}));
    }
  }
}

TEST(Imdb, ReportsCountsAndLimitsTheVocabulary) {
  const Folder folder;
  write(folder / "aclImdb_v1.tar.gz", gzip(archive(kReviews)));
  const Imdb reviews = imdb(folder.path(), {.text = {.vocabulary = 5, .max_length = 6}, .use_cache = false});
  EXPECT_EQ(reviews.report(),
            "train 2 negative, 2 positive; test 2 negative, 2 positive (not the whole set, which has 12500 of each)");
  EXPECT_EQ(reviews.vocabulary.size(), 5);
  EXPECT_EQ(ids_of(reviews.train), (Ids{0, 1, 2, 2, 3, 4, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 2, 3, 0, 0, 1, 4, 2, 3}));
}

// Field case 33: only one label, or half of the files, after a broken download or unpacking.
TEST(Imdb, HalfADataSetIsRefusedWithWhatWasFound) {
  const Folder folder;
  auto refused = [&](const Files& files, const std::string& name = "aclImdb_v1.tar.gz") {
    const Folder place;
    write(place / name, gzip(archive(files)));
    return error_of([&] { imdb(place.path(), kNoCache); });
  };
  const auto expect_in = [](const std::string& text, const std::vector<std::string>& parts) {
    for (const std::string& part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  };
  expect_in(refused(only("pos")), {"train 0 negative, 2 positive; test 0 negative, 2 positive",
                                   "expected reviews of both classes in train and test", "12500 of each"});
  expect_in(refused(only("train")), {"test 0 negative, 0 positive"});
  expect_in(refused(only("train"), "aclImdb-train.tar.gz"),
            {"aclImdb-train.tar.gz", "The other one of aclImdb-train.tar.gz and aclImdb-test.tar.gz is missing"});
  expect_in(refused({}), {"holds no reviews"});
  Files many = kReviews;
  for (int i = 100; i < 103; ++i) many.emplace_back("train/pos/" + std::to_string(i) + "_9.txt", "good");
  expect_in(refused(many), {"train 2 negative, 5 positive", "about as many of each"});
  Files twice = kReviews;
  twice.push_back(kReviews[0]);
  expect_in(refused(twice), {"review train/pos/10_9.txt is there twice"});
  const std::string packed = gzip(archive(kReviews));
  write(folder / "aclImdb_v1.tar.gz", packed.substr(0, packed.size() / 2));
  EXPECT_ERROR(imdb(folder.path(), kNoCache), "cut off");
  EXPECT_ERROR(imdb(folder / "nothing", kNoCache), "has none of aclImdb_v1.tar.gz");
}

// Field case 33: empty reviews, and the longest that there may be.
TEST(Imdb, EmptyAndVeryLongReviews) {
  const Folder folder;
  Files files = kReviews;
  files.emplace_back("train/neg/3_1.txt", "");
  files.emplace_back("train/pos/3_9.txt", "");
  for (int i = 0; i < 200000; ++i) files.back().second += "film ";
  write(folder / "aclImdb_v1.tar.gz", gzip(archive(files)));
  const Imdb reviews = imdb(folder.path(), kNoCache);
  EXPECT_EQ(reviews.train.lengths(), (std::vector<int64_t>{5, 1, 1, 4, 6, 4}));
  EXPECT_EQ(reviews.train.corpus().offsets[5] - reviews.train.corpus().offsets[4], 200001);
  const std::vector<int64_t> both{2, 4};
  EXPECT_EQ(reviews.train.batch(both, {}).x.to_vector<int32_t>(), (Ids{0, 0, 0, 0, 0, 1, 3, 3, 3, 3, 3, 3}));
}

TEST(Imdb, TheCacheServesAllOptionsAndNotices) {
  const Folder folder, cache;
  write(folder / "aclImdb_v1.tar.gz", gzip(archive(kReviews)));
  auto read = [&](int64_t vocabulary) {
    testing::internal::CaptureStderr();
    Imdb reviews =
        imdb(folder.path(), {.text = {.vocabulary = vocabulary, .max_length = 6}, .cache = cache / "deep/er"});
    EXPECT_EQ(ids_of(reviews.train),
              ids_of(imdb(folder.path(), {.text = reviews.train.options(), .use_cache = false}).train));
    EXPECT_EQ(ids_of(reviews.test),
              ids_of(imdb(folder.path(), {.text = reviews.train.options(), .use_cache = false}).test));
    return std::make_pair(reviews.cached, testing::internal::GetCapturedStderr());
  };
  EXPECT_EQ(read(100), std::make_pair(false, std::string()));
  EXPECT_EQ(read(100), std::make_pair(true, std::string()));
  EXPECT_EQ(read(5), std::make_pair(true, std::string())) << "other options need no new tokens";
  const fs::path file = fs::directory_iterator(cache / "deep/er")->path();
  const std::string good = testing_files::read(file);
  for (size_t at = 0; at < good.size(); at += 7) {  // a flipped bit anywhere
    std::string flipped = good;
    flipped[at] ^= 1;
    write(file, flipped);
    const auto [cached, text] = read(100);
    EXPECT_FALSE(cached) << at;
    EXPECT_NE(text.find("it is made anew"), std::string::npos) << text;
    EXPECT_EQ(testing_files::read(file), good);
  }
  for (const size_t size : {size_t{0}, size_t{10}, size_t{40}, good.size() / 2, good.size() - 1}) {  // torn
    write(file, good.substr(0, size));
    EXPECT_FALSE(read(100).first) << size;
    EXPECT_TRUE(read(100).first);
  }
  write(file, good + "x");
  EXPECT_FALSE(read(100).first);

  Files changed = kReviews;
  changed[0].second = "A good film indeed";
  write(folder / "aclImdb_v1.tar.gz", gzip(archive(changed)));
  EXPECT_FALSE(read(100).first) << "other data";
  EXPECT_TRUE(read(100).first);
}

TEST(Imdb, ATreesCacheFollowsItsFiles) {
  const Folder folder, cache;
  write_tree(folder / "aclImdb", kReviews);
  auto read = [&] { return imdb(folder.path(), {.cache = cache.path()}); };
  EXPECT_FALSE(read().cached);
  EXPECT_TRUE(read().cached);
  const std::string file = folder / "aclImdb/train/pos/2_7.txt";
  write(file, "good, poor film");  // as long as before
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  EXPECT_FALSE(read().cached);
  EXPECT_NE(read().vocabulary.id("poor"), Vocabulary::kUnknown);
}

TEST(Imdb, ACacheThatCannotBeWrittenIsAWarning) {
  const Folder folder;
  write(folder / "aclImdb_v1.tar.gz", gzip(archive(kReviews)));
  write(folder / "file", "");
  testing::internal::CaptureStderr();
  EXPECT_EQ(imdb(folder.path(), {.cache = folder / "file"}).train.size(), 4);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the reviews are tokenised each time"), std::string::npos);
}

TEST(Imdb, IsFoundInTheOrderThatTheManualSays) {
  const Folder given, data, cache, origin, nothing;
  fs::create_directory(given / "imdb");
  write(given / "imdb/aclImdb_v1.tar", archive(kReviews));
  fs::create_directories(data / "imdb");
  write(data / "imdb/aclImdb-test.tar", archive(only("test")));  // half: found, so that the error can say so
  write(origin / "good.tar.gz", gzip(archive(kReviews)));
  write(origin / "half.tar.gz", gzip(archive(only("train"))));
  write(origin / "page.tar.gz", "<html>not here</html>");
  const ImdbSources sources{.urls = {"file://" + (origin / "half.tar.gz"), "file://" + (origin / "page.tar.gz")},
                            .reviews_of_a_class = 2};
  const Variable set_cache("WEFT_CACHE", cache.path()), set_data("WEFT_DATA", data.path());
  EXPECT_EQ(find_imdb(given.path(), sources), given / "imdb");
  EXPECT_EQ(find_imdb(given / "imdb/aclImdb_v1.tar", sources), given / "imdb/aclImdb_v1.tar");
  EXPECT_ERROR(find_imdb(nothing.path(), sources), "has aclImdb_v1.tar.gz, or aclImdb-train.tar.gz and");
  EXPECT_EQ(find_imdb("", sources), data / "imdb");
  const Variable no_data("WEFT_DATA", nothing.path());
  testing::internal::CaptureStderr();
  const std::string text = error_of([&] { find_imdb("", sources); });
  for (const std::string& part :
       {"WEFT_DATA: not in " + nothing.path(), "cache: not in " + (cache / "imdb"),
        std::string("half.tar.gz: has train 2 negative, 2 positive; test 0 negative, 0 positive, expected 2 of each"),
        std::string("is not a tar archive")})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  EXPECT_THROW(find_imdb("", sources), NoData);
  EXPECT_FALSE(fs::exists(cache / "imdb/aclImdb_v1.tar.gz"));
  EXPECT_EQ(find_imdb("", {.urls = {"file://" + (origin / "good.tar.gz")}, .reviews_of_a_class = 2}), cache / "imdb");
  EXPECT_EQ(find_imdb("", {.urls = {}}), cache / "imdb");
  testing::internal::GetCapturedStderr();
}

TEST(SampleReviews, AreWholeAndBalanced) {
  const Imdb reviews = sample_imdb({.max_length = 40});
  EXPECT_EQ(reviews.counts, (ReviewCounts{15, 15, 5, 5}));
  EXPECT_EQ(reviews.train.count(1), 15);
  EXPECT_EQ(reviews.test.count(0), 5);
  EXPECT_NE(reviews.report().find("not the whole set"), std::string::npos);
  EXPECT_GT(reviews.vocabulary.size(), 150);
  int64_t known = 0, all = 0;
  for (const int32_t id : reviews.test.corpus().ids) {
    known += id != Vocabulary::kUnknown;
    ++all;
  }
  EXPECT_GT(known * 10, all * 8);
  for (const SampleReview& review : sample_reviews()) EXPECT_LT(reviews.vocabulary.ids(review.text).size(), 40u);
}

TEST(Imdb, TheRealReviews) {
  const char* data = std::getenv("WEFT_DATA");
  const std::string source = data ? std::string(data) + "/imdb" : "";
  if (!data || review_sources(source).size() != 2) GTEST_SKIP() << "skipped: WEFT_DATA names no folder with IMDB";
  const Folder cache;
  const Imdb reviews = imdb(find_imdb(), {.cache = cache.path()});
  EXPECT_FALSE(reviews.cached);
  EXPECT_EQ(reviews.report(), "train 12500 negative, 12500 positive; test 12500 negative, 12500 positive");
  EXPECT_EQ(reviews.vocabulary.size(), 20000);
  const std::vector<std::string_view> frequent{"the", "and", "a", "of", "to", "is", "in", "it", "i", "this"};
  for (size_t i = 0; i < frequent.size(); ++i)
    EXPECT_EQ(reviews.vocabulary.word(static_cast<int64_t>(i) + 3), frequent[i]);
  const Imdb again = imdb(find_imdb(), {.cache = cache.path()});
  EXPECT_TRUE(again.cached);
  EXPECT_EQ(again.train.corpus().ids, reviews.train.corpus().ids);
  EXPECT_EQ(again.test.corpus().ids, reviews.test.corpus().ids);
  EXPECT_EQ(again.test.corpus().offsets, reviews.test.corpus().offsets);
}

}  // namespace
}  // namespace weft::data
