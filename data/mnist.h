// MNIST and the sets that share its format (Fashion-MNIST, KMNIST, …): where the files are, and what they hold.
#pragma once

#include <string>

#include "data/dataset.h"

namespace weft::data {

/// A training and a test set: `auto [train_set, test_set] = data::mnist(folder);`.
struct Split {
  ImageDataset train, test;
};

/// Reads the four IDX files in `folder`, plain or .gz, named `train-images-idx3-ubyte` or `train-images.idx3-ubyte` and
/// so on. Batches are f32 [n, 1, 28, 28], normalised with mean 0.1307 and deviation 0.3081, and i64 labels 0 … 9.
Split mnist(const std::string& folder);

}  // namespace weft::data
