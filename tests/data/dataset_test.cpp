// Datasets, transforms and samplers.
#include "data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include "data/sampler.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

TEST(Dataset, TensorsAreGatheredInTheOrderOfTheIndices) {
  const TensorDataset set(arange(12).reshape({4, 3}), arange(4));
  const auto [x, y] = set.batch(std::vector<int64_t>{2, 0, 2}, {});
  EXPECT_EQ(x.to_vector<int64_t>(), (std::vector<int64_t>{6, 7, 8, 0, 1, 2, 6, 7, 8}));
  EXPECT_EQ(y.to_vector<int64_t>(), (std::vector<int64_t>{2, 0, 2}));
  EXPECT_THROW(set.batch(std::vector<int64_t>{4}, {}), Error);
  EXPECT_THROW(set.batch(std::vector<int64_t>{-1}, {}), Error);
  EXPECT_THROW(TensorDataset(arange(4), arange(3)), Error);
}

TEST(Dataset, StridedTensorsAreTakenByValueOrder) {
  const TensorDataset set(arange(12).reshape({3, 4}).t(), arange(4));
  EXPECT_EQ(set.batch(std::vector<int64_t>{1}, {}).x.to_vector<int64_t>(), (std::vector<int64_t>{1, 5, 9}));
}

TEST(Dataset, ImagesAreNormalisedPerBatch) {
  const Tensor images = from<uint8_t>({0, 51, 255, 102, 1, 2, 3, 4}, {2, 2, 2});
  const ImageDataset set(images, from<uint8_t>({7, 3}, {2}), {.mean = 0.1307f, .deviation = 0.3081f});
  const auto [x, y] = set.batch(std::vector<int64_t>{1, 0}, {});
  EXPECT_EQ(x.sizes(), (Shape{2, 1, 2, 2}));
  EXPECT_EQ(y.to_vector<int64_t>(), (std::vector<int64_t>{3, 7}));
  const std::vector<float> values = x.to_vector<float>();
  EXPECT_EQ(values[4], (0.0f - 0.1307f) / 0.3081f);
  EXPECT_FLOAT_EQ(values[5], (0.2f - 0.1307f) / 0.3081f);
  EXPECT_EQ(values[6], (1.0f - 0.1307f) / 0.3081f);
  // A transform that does nothing changes no bit.
  const Tensor same = set.with({random_shift(0)}).batch(std::vector<int64_t>{1, 0}, {}).x;
  EXPECT_EQ(same.to_vector<float>(), values);
}

TEST(Dataset, SubsetsKeepTheirOrder) {
  const TensorDataset set(arange(10), arange(10));
  const Subset part(set, {7, 3, 5});
  EXPECT_EQ(part.size(), 3);
  EXPECT_EQ(part.batch(std::vector<int64_t>{2, 0}, {}).x.to_vector<int64_t>(), (std::vector<int64_t>{5, 7}));
}

TEST(Transforms, ShiftMovesAndFills) {
  std::vector<float> p{1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19};
  shift({p.data(), 2, 3, 3}, 1, -1, 0);
  EXPECT_EQ(p, (std::vector<float>{0, 0, 0, 2, 3, 0, 5, 6, 0, 0, 0, 0, 12, 13, 0, 15, 16, 0}));
  shift({p.data(), 2, 3, 3}, -5, 7, -1);
  EXPECT_EQ(p, std::vector<float>(18, -1));
}

TEST(Transforms, RotationIsCounterClockwiseAndBilinear) {
  std::vector<float> p{1, 2, 3, 4, 5, 6, 7, 8, 9};
  rotate({p.data(), 1, 3, 3}, 90);
  const std::vector<float> turned{3, 6, 9, 2, 5, 8, 1, 4, 7};
  for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(p[i], turned[i], 1e-5) << i;
  std::vector<float> q{0, 0, 0, 0, 0, 8, 0, 0, 0};  // 45 degrees: the spot goes between its neighbours on the circle
  rotate({q.data(), 1, 3, 3}, 45);
  const float f = 1.41421356f - 1;  // the corner's source lies at x = 1 + sqrt 2 of the row, outside by f
  EXPECT_NEAR(q[2], 8 * (1 - f), 1e-5);
  EXPECT_NEAR(q[4], 0, 1e-6);
}

TEST(Transforms, RandomNumbersComeFromSeedEpochAndIndex) {
  auto draw = [](Epoch epoch, int64_t index) {
    SampleRandom random(epoch, index);
    return std::pair(random.uniform(0, 1), random.integer(-1000, 1000));
  };
  EXPECT_EQ(draw({1, 2}, 3), draw({1, 2}, 3));
  EXPECT_NE(draw({1, 2}, 3), draw({2, 2}, 3));
  EXPECT_NE(draw({1, 2}, 3), draw({1, 3}, 3));
  EXPECT_NE(draw({1, 2}, 3), draw({1, 2}, 4));
  SampleRandom random({}, 0);
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(random.integer(-2, 2));
  EXPECT_EQ(seen, (std::set<int64_t>{-2, -1, 0, 1, 2}));
}

TEST(Transforms, NormaliseAndCompose) {
  std::vector<float> p{0, 1, 2, 3};
  SampleRandom random({}, 0);
  compose({normalise(1, 2), [](const Image& image, SampleRandom&) { image.pixels[0] += 10; }})({p.data(), 1, 2, 2},
                                                                                               random);
  EXPECT_EQ(p, (std::vector<float>{9.5, 0, 0.5, 1}));
}

std::vector<int64_t> sorted(std::vector<int64_t> v) {
  std::ranges::sort(v);
  return v;
}

std::vector<int64_t> first(int64_t n) {
  std::vector<int64_t> v(static_cast<size_t>(n));
  std::iota(v.begin(), v.end(), int64_t{0});
  return v;
}

TEST(Sampler, OrdersArePureFunctionsOfSeedAndEpoch) {
  const auto random = shuffled(100);
  EXPECT_EQ(random->indices({1, 5}), random->indices({1, 5}));
  EXPECT_NE(random->indices({1, 5}), random->indices({1, 6}));
  EXPECT_NE(random->indices({1, 5}), random->indices({2, 5}));
  EXPECT_EQ(sorted(random->indices({1, 5})), first(100));
  EXPECT_EQ(sequential(5)->indices({1, 5}), first(5));
  EXPECT_TRUE(shuffled(0)->indices({}).empty());
}

TEST(Sampler, EachPlaceIsAsLikely) {
  std::array<int, 4> places{};
  for (int64_t epoch = 0; epoch < 4000; ++epoch) {
    const auto order = shuffled(4)->indices({.seed = 9, .number = epoch});
    ++places[static_cast<size_t>(std::ranges::find(order, 0) - order.begin())];
  }
  for (int count : places) EXPECT_NEAR(count, 1000, 130);  // 4.7 deviations
}

// Field case 30.
TEST(Sampler, DistributedSharesChangeByEpochAndCover) {
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const auto a = distributed(8, 0, 2)->indices({.seed = 3, .number = epoch});
    const auto b = distributed(8, 1, 2)->indices({.seed = 3, .number = epoch});
    EXPECT_NE(a, distributed(8, 0, 2)->indices({.seed = 3, .number = epoch + 1}));
    auto all = a;
    all.insert(all.end(), b.begin(), b.end());
    EXPECT_EQ(sorted(all), first(8));
  }
}

TEST(Sampler, UnevenSharesPadOrStayShort) {
  for (int64_t n : {0, 1, 3, 9, 10}) {
    for (int64_t ranks : {1, 2, 4, 7}) {
      std::vector<int64_t> padded, exact;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const auto p = distributed(n, rank, ranks)->indices({});
        const auto e = distributed(n, rank, ranks, {.pad = false})->indices({});
        EXPECT_EQ(static_cast<int64_t>(p.size()), (n + ranks - 1) / ranks);
        EXPECT_EQ(static_cast<int64_t>(p.size()), distributed(n, rank, ranks)->size());
        EXPECT_EQ(static_cast<int64_t>(e.size()), distributed(n, rank, ranks, {.pad = false})->size());
        padded.insert(padded.end(), p.begin(), p.end());
        exact.insert(exact.end(), e.begin(), e.end());
      }
      EXPECT_EQ(sorted(exact), first(n));
      EXPECT_LT(static_cast<int64_t>(padded.size()) - n, ranks);
      padded = sorted(padded);
      padded.erase(std::unique(padded.begin(), padded.end()), padded.end());
      EXPECT_EQ(padded, first(n));
    }
  }
  EXPECT_THROW(distributed(4, 2, 2), Error);
  EXPECT_THROW(distributed(4, -1, 2), Error);
}

TEST(Sampler, AnEpochGoesOnAtAnotherNumberOfRanks) {
  std::vector<int64_t> all;
  for (int64_t rank = 0; rank < 3; ++rank) {  // two samples each, then two ranks do the rest
    const auto mine = distributed(20, rank, 3)->indices({.number = 4});
    all.insert(all.end(), mine.begin(), mine.begin() + 2);
  }
  for (int64_t rank = 0; rank < 2; ++rank) {
    const auto mine = distributed(20, rank, 2)->indices({.number = 4, .seen = 6});
    all.insert(all.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(sorted(all), first(20));
}

}  // namespace
}  // namespace weft::data
