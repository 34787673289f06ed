// MNIST and the sets that share its format (Fashion-MNIST, KMNIST, …): where the files are, and what they hold.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/download.h"

namespace weft::data {

/// A training and a test set: `auto [train_set, test_set] = data::mnist(folder);`.
struct Split {
  ImageDataset train, test;
};

/// Reads the four IDX files in `folder`, plain or .gz, named `train-images-idx3-ubyte` or `train-images.idx3-ubyte` and
/// so on. Batches are f32 [n, 1, 28, 28], normalised with mean 0.1307 and deviation 0.3081, and i64 labels 0 … 9.
Split mnist(const std::string& folder);

/// Where `find_mnist` looks beyond the folders that the user names.
struct MnistSources {
  std::vector<std::string> mirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                                      "https://storage.googleapis.com/cvdf-datasets/mnist"};
  /// Debian's package dataset-fashion-mnist: the same format and sizes, other pictures.
  std::string fashion = "/usr/share/datasets/fashion-mnist";
};

/// The folder to give to `mnist`. A folder that is given must hold the files, itself or in its mnist/. Where it is
/// empty: $WEFT_DATA (itself or its mnist/), the cache, a download into the cache, and last Fashion-MNIST where
/// Debian's package is installed, with a line on standard error that says so. Where all that fails it throws NoData:
/// what was tried, and what to do.
std::string find_mnist(const std::string& folder = "", const MnistSources& sources = {});

}  // namespace weft::data
