// A few film reviews that come with Weft, so that programs run where no data can be had. Figures from them mean
// nothing.
#pragma once

#include <span>

#include "data/imdb.h"

namespace weft::data {

struct SampleReview {
  const char* text;
  bool positive;
  bool test;
};

/// 40 short reviews written for this project, half of them positive; of each class 15 for training and 5 for testing.
std::span<const SampleReview> sample_reviews();

/// The same as what `imdb` gives.
Imdb sample_imdb(const TextOptions& options = {});

}  // namespace weft::data
