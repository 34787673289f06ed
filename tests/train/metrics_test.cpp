// Metrics of an epoch.
#include "train/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft::train {
namespace {

TEST(Mean, ShortLastBatchWeighsLess) {
  Mean loss;
  loss.add(10, 2);
  loss.add(9, 1);
  EXPECT_DOUBLE_EQ(loss.value(), 29.0 / 3);
  EXPECT_EQ(loss.count(), 3);
}

TEST(Mean, RanksMergeSumsNotMeans) {
  Mean whole, a, b;
  whole.add(1, 5);
  whole.add(4, 1);
  a.add(1, 5);
  b.add(4, 1);
  b.merge(a);
  EXPECT_DOUBLE_EQ(b.value(), whole.value());
}

TEST(Mean, EmptyIsNaNAndEmptyBatchesChangeNothing) {
  Mean m;
  EXPECT_TRUE(std::isnan(m.value()));
  m.add(2, 3);
  m.add(std::nan(""), 0);
  EXPECT_EQ(m.value(), 2);
  m.reset();
  EXPECT_EQ(m.count(), 0);
}

}  // namespace
}  // namespace weft::train
