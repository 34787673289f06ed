// Reads MNIST: finds each file under its spellings, then checks that images and labels belong together.
#include "data/mnist.h"

#include <filesystem>

#include "data/idx.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

namespace fs = std::filesystem;

constexpr ImageOptions kMnist{.mean = 0.1307f, .deviation = 0.3081f};

/// The path of "train-images" + "idx3-ubyte" in one of its four spellings; empty where there is none.
std::string find_file(const std::string& folder, const std::string& part, const std::string& kind) {
  for (const char* joint : {"-", "."}) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = fs::path(folder) / (part + joint + kind + ending);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path.string();
    }
  }
  return {};
}

std::string require_file(const std::string& folder, const std::string& part, const std::string& kind) {
  std::string path = find_file(folder, part, kind);
  WEFT_CHECK(!path.empty(), "mnist", "{} has no {}-{} (nor {}.{}, nor either with .gz)", folder, part, kind, part,
             kind);
  return path;
}

ImageDataset read_part(const std::string& folder, const std::string& part) {
  const std::string images_path = require_file(folder, part + "-images", "idx3-ubyte");
  const std::string labels_path = require_file(folder, part + "-labels", "idx1-ubyte");
  const Tensor labels = read_idx(labels_path);
  WEFT_CHECK(labels.dim() != 3, "mnist", "{}: is a file of images {}, expected labels", labels_path,
             str(labels.sizes()));
  WEFT_CHECK(labels.dim() == 1, "mnist", "{}: has sizes {}, expected one dimension", labels_path, str(labels.sizes()));
  const Tensor images = read_idx(images_path);
  WEFT_CHECK(images.dim() != 1, "mnist", "{}: is a file of labels {}, expected images", images_path,
             str(images.sizes()));
  WEFT_CHECK(images.dim() == 3, "mnist", "{}: has sizes {}, expected three dimensions", images_path,
             str(images.sizes()));
  WEFT_CHECK(images.size(0) == labels.size(0), "mnist", "{} images in {}, but {} labels in {}", images.size(0),
             images_path, labels.size(0), labels_path);
  WEFT_CHECK(images.numel() > 0, "mnist", "{}: holds no pixels: {}", images_path, str(images.sizes()));
  const auto* label = labels.data<uint8_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    WEFT_CHECK(label[i] <= 9, "mnist", "{}: label {} is {}, expected 0 to 9", labels_path, i, label[i]);
  return ImageDataset(images, labels, kMnist);
}

}  // namespace

Split mnist(const std::string& folder) {
  std::error_code ignored;
  WEFT_CHECK(fs::is_directory(folder, ignored), "mnist", "there is no folder {}", folder);
  Split split{read_part(folder, "train"), read_part(folder, "t10k")};
  const Shape &train = split.train.images().sizes(), &test = split.test.images().sizes();
  WEFT_CHECK(train[2] == test[2] && train[3] == test[3], "mnist",
             "{}: training images are {} × {}, test images {} × {}", folder, train[2], train[3], test[2], test[3]);
  return split;
}

}  // namespace weft::data
