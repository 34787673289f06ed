// Reads MNIST: finds each file under its spellings, then checks that images and labels belong together.
#include "data/mnist.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "data/download.h"
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

/// True where all four files are there, under any spelling.
bool has_mnist(const std::string& folder) {
  for (const char* part : {"train", "t10k"})
    if (find_file(folder, std::string(part) + "-images", "idx3-ubyte").empty() ||
        find_file(folder, std::string(part) + "-labels", "idx1-ubyte").empty())
      return false;
  return true;
}

/// `folder` or its mnist/, whichever has the files.
std::optional<std::string> folder_with_mnist(const std::string& folder) {
  for (const std::string& candidate : {folder, (fs::path(folder) / "mnist").string()})
    if (has_mnist(candidate)) return candidate;
  return std::nullopt;
}

struct Remote {
  const char *name, *sha256;
};

constexpr std::array<Remote, 4> kFiles{{
    {"train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
    {"train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
    {"t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
    {"t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
}};

/// Loads the four files, each from the first mirror that has it; what went wrong is added to `tried`.
bool download_mnist(const std::string& folder, const MnistSources& sources, std::string& tried) {
  for (const Remote& file : kFiles) {
    bool got = false;
    for (const std::string& mirror : sources.mirrors) {
      try {
        download(mirror + "/" + file.name, (fs::path(folder) / file.name).string(),
                 {.sha256 = file.sha256, .silent_seconds = 4});
        got = true;
        break;
      } catch (const Error& error) {
        tried += fmt::format("\n  {}", error.what());
      }
    }
    if (!got) return false;
  }
  return true;
}

}  // namespace

std::string find_mnist(const std::string& folder, const MnistSources& sources) {
  if (!folder.empty()) {
    const auto found = folder_with_mnist(folder);
    WEFT_CHECK(found, "mnist",
               "neither {} nor {}/mnist has the four files train-images-idx3-ubyte, "
               "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte (or .gz)",
               folder, folder);
    return *found;
  }
  std::string tried;
  if (const char* data = std::getenv("WEFT_DATA"); data && *data) {
    if (const auto found = folder_with_mnist(data)) return *found;
    tried += fmt::format("\n  WEFT_DATA: not in {} nor {}/mnist", data, data);
  }
  const std::string cache = (fs::path(cache_folder()) / "mnist").string();
  if (has_mnist(cache)) return cache;
  tried += fmt::format("\n  cache: not in {}", cache);
  if (download_mnist(cache, sources, tried)) return cache;
  if (has_mnist(sources.fashion)) {
    fmt::print(stderr,
               "mnist: MNIST could not be downloaded; this is Fashion-MNIST, from {} (clothes, not digits: expect "
               "about 91 %)\n",
               sources.fashion);
    return sources.fashion;
  }
  throw NoData(
      fmt::format("[mnist] no data was found:{}\n  Fashion-MNIST: not in {}\n"
                  "Name a folder that has it (--data, WEFT_DATA), or install Fashion-MNIST, which has the same "
                  "format; on Debian: apt-get install dataset-fashion-mnist",
                  tried, sources.fashion));
}

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
