// The loader: the same batches for any number of workers, clean ends of every kind.
#include "data/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/index.h"
#include "tensor/error.h"
#include "tensor/stream.h"
#include "tensor/threads.h"
#include "tests/expect_error.h"
#include "tests/on_device.h"

namespace weft::data {
namespace {

/// Sample i is the number i and a random number that the dataset draws itself; counts its calls, and fails at one
/// sample.
struct Numbers : Dataset {
  int64_t n;
  int64_t bad = -1;
  mutable std::atomic<int64_t> calls{0};
  mutable std::atomic<int> most_threads{0};

  explicit Numbers(int64_t n, int64_t bad = -1) : n(n), bad(bad) {}
  int64_t size() const override { return n; }
  Batch batch(std::span<const int64_t> indices, const Epoch&) const override {
    ++calls;
    if (num_threads() > most_threads) most_threads = num_threads();
    if (indices[0] % 3 == 0) std::this_thread::yield();
    for (int64_t i : indices)
      if (i == bad) throw std::runtime_error("sample " + std::to_string(i) + " is broken");
    return {from<int64_t>(indices, {static_cast<int64_t>(indices.size())}), rand({2})};
  }
};

std::vector<std::vector<int64_t>> epoch_of(Loader& loader) {
  std::vector<std::vector<int64_t>> batches;
  for (auto [x, y] : loader) batches.push_back(x.to_vector<int64_t>());
  return batches;
}

TEST(Loader, TheTailIsABatchOrDropped) {
  const Numbers set(10);
  Loader loader(set, {.batch = 4});
  EXPECT_EQ(loader.batches(), 3);
  EXPECT_EQ(epoch_of(loader), (std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9}}));
  Loader dropping(set, {.batch = 4, .drop_last = true, .workers = 2});
  EXPECT_EQ(dropping.batches(), 2);
  EXPECT_EQ(epoch_of(dropping), (std::vector<std::vector<int64_t>>{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  Loader divisible(set, {.batch = 5, .drop_last = true});
  EXPECT_EQ(epoch_of(divisible).size(), 2u);
}

// Field case 31, first half.
TEST(Loader, DropLastWithTooFewSamplesIsNoBatchAndAWarning) {
  for (int workers : {0, 2}) {
    const Numbers set(3);
    testing::internal::CaptureStderr();
    Loader loader(set, {.batch = 4, .drop_last = true, .workers = workers});
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_NE(text.find("3 samples do not fill one batch of 4"), std::string::npos) << text;
    EXPECT_EQ(loader.batches(), 0);
    EXPECT_TRUE(epoch_of(loader).empty());
  }
  const Numbers none(0);
  Loader loader(none, {.batch = 4, .workers = 2});
  EXPECT_TRUE(epoch_of(loader).empty());
}

// Field case 31, second half: 9 samples, 4 ranks, batches of 2.
TEST(Loader, NoRealSampleIsDroppedWhileACopyIsKept) {
  const Numbers set(9);
  for (bool drop_last : {false, true}) {
    std::multiset<int64_t> seen;
    for (int64_t rank = 0; rank < 4; ++rank) {
      Loader loader(set, {.batch = 2, .sampler = distributed(set, rank, 4), .drop_last = drop_last});
      EXPECT_EQ(loader.batches(), drop_last ? 1 : 2);
      for (const auto& batch : epoch_of(loader)) seen.insert(batch.begin(), batch.end());
    }
    const std::set<int64_t> distinct(seen.begin(), seen.end());
    EXPECT_TRUE(distinct.size() == 9 || seen.size() == distinct.size()) << "a copy is kept, a sample is lost";
    EXPECT_EQ(distinct.size(), drop_last ? 8u : 9u);
  }
}

TEST(Loader, OrderAndRandomNumbersDoNotDependOnTheWorkers) {
  const ImageDataset images = ImageDataset(randint(0, 256, {50, 6, 6}).to(u8), randint(0, 10, {50}).to(u8))
                                  .with({random_shift(2), random_rotation(20)});
  const Numbers numbers(50);
  auto run = [](const Dataset& set, int workers) {
    Loader loader(set, {.batch = 8, .shuffle = true, .workers = workers, .seed = 7});
    std::vector<double> values;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto [x, y] : loader) {
        for (const Tensor& t : {x, y}) {
          const auto v = t.to_vector<double>();
          values.insert(values.end(), v.begin(), v.end());
        }
      }
    }
    return values;
  };
  for (const Dataset* set : std::initializer_list<const Dataset*>{&images, &numbers}) {
    const auto plain = run(*set, 0);
    for (int workers : {1, 2, 5}) EXPECT_EQ(run(*set, workers), plain) << workers;
  }
}

TEST(Loader, AugmentationOfASampleIsTheSameInAnyBatchAndChangesByEpoch) {
  const ImageDataset images =
      ImageDataset(randint(0, 256, {8, 6, 6}).to(u8), zeros({8}, u8)).with({random_shift(3), random_rotation(30)});
  const auto alone = images.batch(std::vector<int64_t>{5}, {.seed = 1, .number = 2}).x.to_vector<float>();
  const auto among =
      images.batch(std::vector<int64_t>{1, 5, 7}, {.seed = 1, .number = 2}).x.select(0, 1).to_vector<float>();
  EXPECT_EQ(alone, among);
  EXPECT_NE(alone, images.batch(std::vector<int64_t>{5}, {.seed = 1, .number = 3}).x.to_vector<float>());
}

// Field case 30 for the loader: each loop is a new order, and a set epoch comes back exactly.
TEST(Loader, EachLoopIsTheNextEpoch) {
  const Numbers set(8);
  Loader loader(set, {.batch = 3, .sampler = distributed(set, 1, 2), .workers = 1, .seed = 11});
  const auto a = epoch_of(loader), b = epoch_of(loader);
  EXPECT_NE(a, b);
  EXPECT_EQ(loader.next_epoch(), 2);
  loader.set_epoch(0);
  EXPECT_EQ(epoch_of(loader), a);
  EXPECT_EQ(epoch_of(loader), b);
}

TEST(Loader, GoesOnInMidEpoch) {
  const Numbers set(20);
  Loader loader(set, {.batch = 4, .shuffle = true});
  const auto whole = epoch_of(loader);
  loader.set_epoch(0, 8);
  EXPECT_EQ(epoch_of(loader), std::vector<std::vector<int64_t>>(whole.begin() + 2, whole.end()));
  EXPECT_EQ(epoch_of(loader).size(), 5u);
}

TEST(Loader, LeavingEarlyStopsTheWorkers) {
  const Numbers set(1000);
  Loader loader(set, {.batch = 1, .workers = 3});
  for (int round = 0; round < 20; ++round) {
    int64_t count = 0;
    for (auto [x, y] : loader) {
      EXPECT_EQ(x.item(), static_cast<double>(count));
      if (++count == 5) break;
    }
  }
  const int64_t calls = set.calls;  // the workers are gone: the count stands still
  EXPECT_LE(calls, 20 * (5 + 3 * 2 + 3));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(set.calls, calls);
}

TEST(Loader, AnErrorComesOutAtItsBatch) {
  for (int workers : {0, 1, 3}) {
    const Numbers set(20, 13);
    Loader loader(set, {.batch = 2, .workers = workers});
    int64_t good = 0;
    try {
      for (auto [x, y] : loader) ++good;
      FAIL() << "the error got lost";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "sample 13 is broken");
    }
    EXPECT_EQ(good, 6);
  }
}

TEST(Loader, WorkersUseNoTeamsAndTheCallerKeepsItsOwn) {
  const int before = num_threads();
  set_num_threads(4);
  const Numbers set(10);
  Loader loader(set, {.batch = 2, .workers = 2});
  epoch_of(loader);
  EXPECT_EQ(set.most_threads, 1);
  EXPECT_EQ(num_threads(), 4);
  set_num_threads(before);
}

TEST(Loader, TheCallersRandomNumbersGoOnUndisturbed) {
  manual_seed(5);
  const auto expected = rand({3}).to_vector<float>();
  manual_seed(5);
  const Numbers set(10);
  Loader loader(set, {.batch = 2});
  epoch_of(loader);
  EXPECT_EQ(rand({3}).to_vector<float>(), expected);
}

TEST(Loader, WrongOptionsAreErrors) {
  const Numbers set(4);
  EXPECT_THROW(Loader(set, {.batch = 0}), Error);
  EXPECT_THROW(Loader(set, {.workers = -1}), Error);
  EXPECT_THROW(Loader(set, {.shuffle = true, .sampler = sequential(4)}), Error);
}

// Field case 34: the mean over an epoch weighs batches by their samples, and evaluation shares hold no copies.
TEST(Loader, AMeanOverAShortLastBatchCountsSamples) {
  const TensorDataset set(from<double>({10, 10, 9}, {3}), arange(3));
  Loader loader(set, {.batch = 2});
  double sum = 0, samples = 0;
  for (auto [x, y] : loader) {
    const auto n = static_cast<double>(x.size(0));
    double mean = 0;
    for (double v : x.to_vector<double>()) mean += v / n;
    sum += mean * n;
    samples += n;
  }
  EXPECT_DOUBLE_EQ(sum / samples, 29.0 / 3);
  sum = samples = 0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    Loader share(set, {.batch = 2, .sampler = distributed(set, rank, 2, {.shuffle = false, .pad = false})});
    for (auto [x, y] : share) {
      for (double v : x.to_vector<double>()) sum += v;
      samples += static_cast<double>(x.size(0));
    }
  }
  EXPECT_DOUBLE_EQ(sum / samples, 29.0 / 3);
}

class LoaderDevice : public OnDevice<testing::TestWithParam<int>> {};

TEST_P(LoaderDevice, BatchesArriveThere) {
  const Numbers set(11);
  Loader there(set, {.batch = 3, .shuffle = true, .workers = GetParam(), .device = device});
  Loader here(set, {.batch = 3, .shuffle = true});
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<Batch> kept;  // in device memory, while later ones are copied
    for (auto [x, y] : there) {
      EXPECT_EQ(x.device(), device);
      EXPECT_EQ(y.device(), device);
      kept.push_back({x, y * 2});
    }
    size_t i = 0;
    for (auto [x, y] : here) {
      ASSERT_LT(i, kept.size());
      EXPECT_EQ(kept[i].x.to_vector<int64_t>(), x.to_vector<int64_t>());
      EXPECT_EQ(kept[i].y.to_vector<float>(), (y * 2).to_vector<float>());
      ++i;
    }
    EXPECT_EQ(i, kept.size());
  }
}

TEST_P(LoaderDevice, AnErrorComesAtItsBatch) {
  const Numbers set(9, 4);
  Loader loader(set, {.batch = 3, .workers = GetParam(), .device = device});
  auto it = loader.begin();
  EXPECT_EQ((*it).x.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_THROW(++it, std::runtime_error);
}

TEST_P(LoaderDevice, LeftEarly) {
  const Numbers set(30);
  for (int64_t batches : {0, 1, 2}) {
    Loader loader(set, {.batch = 3, .workers = GetParam(), .device = device});
    auto it = loader.begin();
    for (int64_t i = 0; i < batches; ++i) ++it;
  }
}

// The end of an epoch waits for its last copy; what a kernel found wrong meanwhile is not lost with it.
TEST_P(LoaderDevice, AFaultOutlivesTheLoop) {
  const Numbers set(6);
  Loader loader(set, {.batch = 3, .workers = GetParam(), .device = device});
  for (auto [x, y] : loader) index_select(zeros({2}, device), 0, x);
  EXPECT_ERROR(synchronize(device), "outside of a dimension [0, 2)");
}

INSTANTIATE_TEST_SUITE_P(Workers, LoaderDevice, testing::Values(0, 2));

}  // namespace
}  // namespace weft::data
