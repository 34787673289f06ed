// The IDX reader and MNIST: what is read, and a message of its own for each kind of damage (field case 32).
#include "data/idx.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/loader.h"
#include "data/mnist.h"
#include "tensor/error.h"
#include "tests/data/files.h"

namespace weft::data {
namespace {

using namespace testing_files;

/// The message of the error that reading `bytes` as a file of this name gives; empty where it is read.
std::string fault(const std::string& name, const std::string& bytes) {
  const Folder folder;
  write(folder / name, bytes);
  try {
    read_idx(folder / name);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect_fault(const std::string& name, const std::string& bytes, const std::string& words) {
  const std::string text = fault(name, bytes);
  EXPECT_NE(text.find(words), std::string::npos) << "wanted \"" << words << "\", got \"" << text << '"';
  EXPECT_NE(text.find(name), std::string::npos) << "the file is not named: " << text;
}

TEST(Idx, ReadsPlainAndGzip) {
  const Folder folder;
  const std::string bytes = idx({2, 3}, "abcdef");
  write(folder / "plain", bytes);
  write(folder / "packed.gz", gzip(bytes));
  write(folder / "two.gz", gzip(bytes.substr(0, 5)) + gzip(bytes.substr(5)));
  for (const char* name : {"plain", "packed.gz", "two.gz"}) {
    const Tensor x = read_idx(folder / name);
    EXPECT_EQ(x.sizes(), (Shape{2, 3}));
    EXPECT_EQ(x.to_vector<uint8_t>(), (std::vector<uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  }
  write(folder / "empty", idx({0, 28, 28}, ""));
  EXPECT_EQ(read_idx(folder / "empty").sizes(), (Shape{0, 28, 28}));
}

TEST(Idx, EachDamageHasItsMessage) {
  const std::string good = idx({2, 3}, "abcdef"), packed = gzip(good);
  EXPECT_EQ(fault("x", good), "");
  expect_fault("x", packed, "is gzip, not IDX");
  expect_fault("x.gz", good, "is not gzip, though its name ends in .gz");
  expect_fault("x", "", "too short for an IDX header: 0 bytes");
  expect_fault("x.gz", "", "is not gzip");
  expect_fault("x", good.substr(0, 7), "ends inside its header, after 7 bytes");
  expect_fault("x", "PNG " + good, "is not an IDX file: it starts with 0x504e4720");
  expect_fault("x", std::string("\0\0\x0d\x01", 4) + "abcd", "holds values of IDX type 0x0d");
  expect_fault("x", std::string("\0\0\x08\x2a", 4) + std::string(200, 'a'), "has 42 dimensions");
  expect_fault("x", good.substr(0, 15), "the header claims 6 bytes of values [2, 3], the file has 3");
  expect_fault("x", good + "!!", "more bytes follow the 6 that the header claims [2, 3]: the file has 8");
  expect_fault("x.gz", gzip(good.substr(0, 15)), "the header claims 6 bytes of values [2, 3], the gzip stream holds 3");
  expect_fault("x.gz", gzip(good + "!!"), "more bytes follow the 6 that the header claims [2, 3] in the gzip stream");
  expect_fault("x.gz", packed + "!!", "other bytes follow the end of the gzip stream");
  for (size_t cut = 2; cut < packed.size(); ++cut) expect_fault("x.gz", packed.substr(0, cut), "cut off");
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 8] ^= 1;
  expect_fault("x.gz", wrong_sum, "the gzip stream is damaged");
}

TEST(Idx, HugeClaimsAreRefusedBeforeMemoryIsTaken) {
  const int64_t before = memory::statistics().allocations;
  const std::string huge = idx({0x7fffffff, 0xffffffff}, "abc");
  expect_fault("x", huge, "[2147483647, 4294967295], the file has 3");
  expect_fault("x.gz", gzip(huge), "unpacks to at most");
  expect_fault("x", idx({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, "abc"), "more than 2^63 values");
  EXPECT_EQ(memory::statistics().allocations, before);
}

/// Whether these bytes, in memory, are a good file.
bool readable(std::string bytes, bool packed) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fmemopen(bytes.data(), bytes.size(), "rb"), std::fclose);
  try {
    read_idx(file.get(), static_cast<int64_t>(bytes.size()), "memory", packed);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Idx, FlippedAndCutBytesNeverCrash) {
  const std::string good = idx({2, 3}, "abcdef");
  int refused = 0, read = 0;
  for (const std::string& bytes : {good, gzip(good)}) {
    for (bool packed : {false, true}) {
      for (uint64_t i = 0; i < 2000; ++i) {
        const PhiloxBlock draw = philox(1, i);
        std::string damaged = bytes.substr(0, draw[0] % 4 == 0 ? 1 + draw[1] % bytes.size() : bytes.size());
        damaged[draw[2] % damaged.size()] ^= static_cast<char>(1 + draw[3] % 255);
        ++(readable(damaged, packed) ? read : refused);
      }
    }
  }
  EXPECT_GT(refused, 4000);
  EXPECT_GT(read, 300);  // a changed value is still a good file
}

TEST(Mnist, ReadsAllFourSpellings) {
  for (const char* joint : {"-", "."}) {
    for (bool packed : {false, true}) {
      const Folder folder;
      write_mnist(folder.path(), joint, packed);
      const auto [train, test] = mnist(folder.path());
      EXPECT_EQ(train.size(), 3);
      EXPECT_EQ(test.size(), 2);
      const auto [x, y] = test.batch(std::vector<int64_t>{1}, {});
      EXPECT_EQ(x.sizes(), (Shape{1, 1, 2, 2}));
      EXPECT_FLOAT_EQ(x.to_vector<float>()[3], (static_cast<float>('H') / 255 - 0.1307f) / 0.3081f);
      EXPECT_EQ(y.item(), 2);
    }
  }
}

TEST(Mnist, FilesThatDoNotFitTogetherAreErrors) {
  auto expect = [](const std::string& file, const std::string& bytes, const std::string& words) {
    const Folder folder;
    write_mnist(folder.path());
    if (bytes.empty())
      fs::remove(folder / file);
    else
      write(folder / file, bytes);
    try {
      mnist(folder.path());
      FAIL() << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  expect("t10k-labels-idx1-ubyte", "",
         "has no t10k-labels-idx1-ubyte (nor t10k-labels.idx1-ubyte, nor either with .gz)");
  expect("train-labels-idx1-ubyte", idx({3, 2, 2}, "abcdefghijkl"), "is a file of images [3, 2, 2], expected labels");
  expect("train-images-idx3-ubyte", idx({3}, {5, 0, 9}), "is a file of labels [3], expected images");
  expect("train-labels-idx1-ubyte", idx({4}, {5, 0, 9, 1}), "3 images in");
  expect("train-labels-idx1-ubyte", idx({3}, {5, 28, 9}), "label 1 is 28, expected 0 to 9");
  expect("t10k-images-idx3-ubyte", idx({2, 2, 3}, "ABCDEFGHIJKL"), "training images are 2 × 2, test images 2 × 3");
  EXPECT_THROW(mnist("/no/such/folder"), Error);
}

TEST(Mnist, TheRealFiles) {
  const char* data = std::getenv("WEFT_DATA");
  const std::string folder =
      data ? (fs::is_directory(fs::path(data) / "mnist") ? std::string(data) + "/mnist" : data) : "";
  if (!data || !fs::is_directory(folder)) GTEST_SKIP() << "skipped: WEFT_DATA names no folder with the real MNIST";
  const auto [train, test] = mnist(folder);
  auto check = [](const ImageDataset& set, const std::vector<int64_t>& classes, const std::vector<uint8_t>& first) {
    const auto labels = set.labels().to_vector<uint8_t>();
    std::vector<int64_t> counts(10);
    for (uint8_t label : labels) ++counts[label];
    EXPECT_EQ(counts, classes);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), labels.begin()));
    EXPECT_EQ(set.images().sizes(), (Shape{set.size(), 1, 28, 28}));
  };
  check(train, {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}, {5, 0, 4, 1, 9, 2, 1, 3, 1, 4});
  check(test, {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}, {7, 2, 1, 0, 4, 1, 4, 9, 5, 9});
  double sum = 0, squares = 0;
  Loader loader(train, {.batch = 1000, .workers = 2});
  for (auto [x, y] : loader) {
    for (float v : x.to_vector<float>()) {
      sum += v;
      squares += double{v} * v;
    }
  }
  const double n = 60000.0 * 784, mean = sum / n;  // normalised: mean 0, deviation 1, to the digits of the constants
  EXPECT_NEAR(mean, 0, 2e-4);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 1, 2e-4);
}

}  // namespace
}  // namespace weft::data
