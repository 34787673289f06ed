// Batches of texts, buckets by length, and the held-out part.
#include "data/text_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "autograd/ops/embedding.h"
#include "autograd/ops/loss.h"
#include "data/loader.h"
#include "data/split.h"
#include "tests/expect_error.h"

namespace weft::data {
namespace {

using Ids = std::vector<int32_t>;

const std::vector<std::string> kTexts{"good good film", "<br />", "bad bad bad story story today", "film"};
const std::vector<int64_t> kLabels{1, 0, 0, 1};
const Vocabulary kVocabulary = Vocabulary::build(kTexts, 100);  // bad film good story today: 3 4 5 6 7

TEST(TextDataset, BatchesArePaddedOnTheLeft) {
  const TextDataset set(kTexts, kLabels, kVocabulary, {.max_length = 5});
  EXPECT_EQ(set.size(), 4);
  EXPECT_EQ(set.count(1), 2);
  EXPECT_EQ(set.labels(), kLabels);
  EXPECT_EQ(set.lengths(), (std::vector<int64_t>{4, 1, 5, 2}));
  const std::vector<int64_t> indices{2, 0, 1};
  EXPECT_EQ(set.lengths(indices), (std::vector<int64_t>{5, 4, 1}));
  const auto [x, y] = set.batch(indices, {});
  EXPECT_EQ(x.dtype(), i32);
  EXPECT_EQ(x.sizes(), (Shape{3, 5}));
  EXPECT_EQ(x.to_vector<int32_t>(), (Ids{3, 3, 6, 6, 7, 0, 1, 5, 5, 4, 0, 0, 0, 0, 1}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 1, 0}));
  for (size_t i = 0; i < kTexts.size(); ++i) {
    const std::vector<int64_t> one{static_cast<int64_t>(i)};
    EXPECT_EQ(set.batch(one, {}).x.to_vector<int32_t>(), kVocabulary.encode(kTexts[i], 5));
  }
  EXPECT_EQ(set.batch({}, {}).x.sizes(), (Shape{0, 5}));
  const std::vector<int64_t> outside{4};
  EXPECT_ERROR(set.batch(outside, {}), "index 4 is outside of the 4 samples");
}

TEST(TextDataset, AsLongAsTheLongestWhereAsked) {
  const TextDataset whole(kTexts, kLabels, kVocabulary, {.max_length = 400});
  const TextDataset set = whole.with({.pad_to_longest = true, .multiple = 3});
  const std::vector<int64_t> few{3, 1}, all{0, 1, 2, 3};
  EXPECT_EQ(whole.batch(few, {}).x.sizes(), (Shape{2, 400}));
  EXPECT_EQ(set.batch(few, {}).x.to_vector<int32_t>(), (Ids{0, 1, 4, 0, 0, 1}));
  EXPECT_EQ(set.batch(all, {}).x.sizes(), (Shape{4, 9}));
}

TEST(TextDataset, ASmallerVocabularyNeedsNoNewTokens) {
  const TextDataset set =
      TextDataset(kTexts, kLabels, kVocabulary).with({.vocabulary = 5, .max_length = 4});  // bad, film
  const std::vector<int64_t> indices{0};
  EXPECT_EQ(set.batch(indices, {}).x.to_vector<int32_t>(), (Ids{1, 2, 2, 4}));
}

TEST(TextDataset, FitsEmbeddingAndLoss) {
  const TextDataset set(kTexts, kLabels, kVocabulary, {.max_length = 6});
  Loader loader(set, {.batch = 4, .workers = 1});
  for (auto [x, y] : loader) {
    EXPECT_EQ(embedding(ones({kVocabulary.size(), 2}), x, 0).sizes(), (Shape{4, 6, 2}));
    EXPECT_NEAR(bce_with_logits(zeros({4}), y).item(), std::log(2.0), 1e-6);
  }
}

TEST(TextDataset, WrongOptionsAreErrors) {
  EXPECT_ERROR(TextDataset(kTexts, kLabels, kVocabulary, {.max_length = 0}), "max_length must be at least 1, got 0");
  EXPECT_ERROR(TextDataset(kTexts, kLabels, kVocabulary).with({.vocabulary = 2}), "counts the 3 special ids, got 2");
  EXPECT_ERROR(TextDataset(kTexts, kLabels, kVocabulary, {.multiple = 0}), "multiple must be at least 1");
  EXPECT_ERROR(TextDataset(kTexts, std::vector<int64_t>{1}, kVocabulary), "4 texts have 1 labels");
  EXPECT_ERROR(TextDataset(kTexts, std::vector<int64_t>{1, 0, 2, 0}, kVocabulary), "label 2 is 2");
}

/// Ids that a whole epoch of batches has beyond the texts' own, as a share.
double padding_share(const std::vector<int64_t>& order, const std::vector<int64_t>& lengths, size_t batch) {
  int64_t used = 0, all = 0;
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    int64_t longest = 0;
    const size_t end = std::min(begin + batch, order.size());
    for (size_t i = begin; i < end; ++i) {
      const int64_t length = lengths[static_cast<size_t>(order[i])];
      used += length;
      longest = std::max(longest, length);
    }
    all += longest * static_cast<int64_t>(end - begin);
  }
  return 1 - static_cast<double>(used) / static_cast<double>(all);
}

std::vector<int64_t> some_lengths(int64_t n) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < n; ++i) lengths.push_back(1 + i * i * 7919 % 400);
  return lengths;
}

TEST(Bucketed, LessPaddingAndEverySampleOnce) {
  const std::vector<int64_t> lengths = some_lengths(3001);
  const auto sampler = bucketed(lengths, {.batch = 32, .pool = 20});
  EXPECT_EQ(sampler->size(), 3001);
  std::vector<int64_t> order = sampler->indices({.seed = 1});
  const double before = padding_share(shuffled(3001)->indices({.seed = 1}), lengths, 32);
  const double after = padding_share(order, lengths, 32);
  EXPECT_GT(before, 0.35);
  EXPECT_LT(after, 0.08);
  EXPECT_GT(lengths[static_cast<size_t>(order.back())], 200) << "the batch that is not full stays last";
  std::sort(order.begin(), order.end());
  std::vector<int64_t> all(3001);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

TEST(Bucketed, IsAFunctionOfSeedAndEpoch) {
  const auto sampler = bucketed(some_lengths(500), {.batch = 8, .pool = 5});
  const auto first = sampler->indices({.seed = 3, .number = 2});
  EXPECT_EQ(first, sampler->indices({.seed = 3, .number = 2}));
  EXPECT_NE(first, sampler->indices({.seed = 3, .number = 3}));
  EXPECT_NE(first, sampler->indices({.seed = 4, .number = 2}));
  const auto rest = sampler->indices({.seed = 3, .number = 2, .seen = 40});
  EXPECT_EQ(rest, std::vector<int64_t>(first.begin() + 40, first.end()));
  // Batches come in no order of length, and a batch has other company in each epoch.
  const std::vector<int64_t> lengths = some_lengths(500);
  int rising = 0;
  for (size_t i = 8; i + 8 < first.size(); i += 8)
    rising += lengths[static_cast<size_t>(first[i])] > lengths[static_cast<size_t>(first[i - 8])];
  EXPECT_GT(rising, 15);
  EXPECT_LT(rising, 45);
}

TEST(Bucketed, RanksShareEachBatch) {
  const std::vector<int64_t> lengths = some_lengths(640);
  const auto together = bucketed(lengths, {.batch = 64})->indices({.seed = 5});
  std::set<int64_t> seen;
  for (int64_t rank = 0; rank < 4; ++rank) {
    const auto mine = bucketed(lengths, {.batch = 64, .rank = rank, .ranks = 4})->indices({.seed = 5});
    ASSERT_EQ(mine.size(), 160u);
    for (size_t i = 0; i < mine.size(); ++i) EXPECT_EQ(mine[i], together[4 * i + static_cast<size_t>(rank)]);
    seen.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(seen.size(), 640u);
}

TEST(Bucketed, EdgesAndErrors) {
  EXPECT_TRUE(bucketed({})->indices({}).empty());
  EXPECT_EQ(bucketed({5})->indices({}), std::vector<int64_t>{0});
  EXPECT_EQ(bucketed({3, 1, 2}, {.batch = INT64_MAX, .pool = INT64_MAX})->indices({}), (std::vector<int64_t>{1, 2, 0}));
  EXPECT_ERROR(bucketed({1}, {.batch = 0}), "at least 1, got 0");
  EXPECT_ERROR(bucketed({1}, {.rank = 2, .ranks = 2}), "rank 2 of 2 does not exist");
}

TEST(HoldOut, KeepsTheProportionsAndCovers) {
  std::vector<int64_t> labels(1000);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = i % 4 == 0;
  const HeldOutIndices parts = hold_out(labels, 0.1, 7);
  EXPECT_EQ(parts.validation.size(), 100u);
  EXPECT_EQ(std::count_if(parts.validation.begin(), parts.validation.end(), [&](int64_t i) { return i % 4 == 0; }), 25);
  std::vector<int64_t> all = parts.training;
  all.insert(all.end(), parts.validation.begin(), parts.validation.end());
  std::sort(all.begin(), all.end());
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<int64_t>(i));
  EXPECT_EQ(hold_out(labels, 0.1, 7).validation, parts.validation);
  EXPECT_NE(hold_out(labels, 0.1, 8).validation, parts.validation);
  EXPECT_TRUE(hold_out(labels, 0).validation.empty());
  EXPECT_ERROR(hold_out(labels, 1), "must be in [0, 1), got 1");
}

TEST(HoldOut, AsSubsets) {
  const TextDataset set(kTexts, kLabels, kVocabulary, {.max_length = 4});
  const HeldOut parts = hold_out(set, set.labels(), 0.5);
  ASSERT_EQ(parts.validation.size(), 2);
  EXPECT_NE(set.label(parts.validation.indices()[0]), set.label(parts.validation.indices()[1]));
  const std::vector<int64_t> both{0, 1};
  EXPECT_EQ(parts.training.batch(both, {}).x.to_vector<int32_t>(),
            set.batch(parts.training.indices(), {}).x.to_vector<int32_t>());
}

}  // namespace
}  // namespace weft::data
