// Tensors in files: exact round trips, equal bytes for equal values, and a message for each kind of damage.
#include "tensor/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "tensor/error.h"
#include "tensor/random.h"
#include "tensor/view.h"
#include "tests/data/files.h"

namespace weft {
namespace {

using namespace testing_files;

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string fault(const std::string& bytes) {
  const Folder folder;
  write(folder / "x.safetensors", bytes);
  try {
    load(folder / "x.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

void expect_fault(const std::string& bytes, const std::string& words) {
  const std::string text = fault(bytes);
  EXPECT_NE(text.find(words), std::string::npos) << "wanted \"" << words << "\", got \"" << text << '"';
}

TEST(Safetensors, AllDtypesComeBack) {
  const Folder folder;
  std::vector<Named> tensors;
  const Tensor values = from<double>({0, 1, 2, 3, 100, 255}, {2, 3});
  for (DType t : {f32, f64, bf16, f16, i32, i64, u8, boolean})
    tensors.push_back({std::string(name(t)), raw::to(values, t)});
  tensors.push_back({"number", scalar(2.5)});
  save(folder / "a", tensors, {{"format", "pt"}, {"step", "7"}});
  const std::vector<Named> back = load(folder / "a");
  ASSERT_EQ(back.size(), tensors.size());
  for (const Named& wanted : tensors) {
    const auto found = std::ranges::find(back, wanted.name, &Named::name);
    ASSERT_NE(found, back.end());
    EXPECT_EQ(found->value.dtype(), wanted.value.dtype());
    EXPECT_EQ(found->value.sizes(), wanted.value.sizes());
    EXPECT_EQ(std::memcmp(found->value.raw_data(), wanted.value.raw_data(), static_cast<size_t>(wanted.value.bytes())),
              0);
  }
  EXPECT_EQ(load_metadata(folder / "a"), (Metadata{{"format", "pt"}, {"step", "7"}}));
}

// Field case 48.
TEST(Safetensors, ZeroSizesStridesAndSharedMemory) {
  const Folder folder;
  const Tensor x = arange(6, f32).reshape({2, 3});
  const Tensor none = empty({2, 0});
  save(folder / "a", {{"t", x.t()},
                      {"x", x},
                      {"row", x.select(0, 1)},
                      {"none", none},
                      {"none2", none},
                      {"wide", scalar(1.f).expand({3})}});
  std::map<std::string, Tensor> back;
  for (const Named& t : load(folder / "a")) back[t.name] = t.value;
  EXPECT_EQ(back["t"].to_vector<float>(), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(back["row"].to_vector<float>(), (std::vector<float>{3, 4, 5}));
  EXPECT_EQ(back["wide"].to_vector<float>(), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(back["none"].sizes(), (Shape{2, 0}));
  EXPECT_EQ(back["none2"].sizes(), (Shape{2, 0}));
  EXPECT_EQ(load(folder / "a").size(), 6u);
  save(folder / "b", {});
  EXPECT_TRUE(load(folder / "b").empty());
}

TEST(Safetensors, EqualValuesGiveEqualBytes) {
  const Folder folder;
  const Tensor x = arange(6, f32).reshape({2, 3}), n = arange(4);
  save(folder / "a", {{"x", x}, {"n", n}}, {{"k", "v"}});
  save(folder / "b", {{"n", n.clone()}, {"x", x.t().contiguous().t()}}, {{"k", "v"}});
  EXPECT_EQ(read(folder / "a"), read(folder / "b"));
  // The format itself: header length, JSON padded to 8, the wider type first.
  const std::string header =
      R"({"__metadata__":{"k":"v"},"n":{"data_offsets":[0,32],"dtype":"I64","shape":[4]},"x":{"data_offsets":[32,56],"dtype":"F32","shape":[2,3]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string bytes = read(folder / "a");
  EXPECT_EQ(bytes.substr(0, 8 + padded.size()), file_of(padded, ""));
  EXPECT_EQ(bytes.size(), 8 + padded.size() + 56);
}

TEST(Safetensors, EachDamageHasItsMessage) {
  auto one = [](const std::string& entry) { return "{\"a\":" + entry + "}"; };
  const std::string good = one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"), data(8, 'x');
  EXPECT_EQ(fault(file_of(good, data)), "");
  expect_fault("1234567", "too short for a safetensors file: 7 bytes");
  expect_fault(file_of(good, data).substr(0, 30), "claims a header of");
  expect_fault(std::string(8, '\xff') + good, "claims a header of 18446744073709551615 bytes");
  expect_fault(file_of("{\"a\":", data), "the header is not JSON");
  expect_fault(file_of("[1]", data), "the header is not a JSON object");
  expect_fault(file_of(std::string(100000, '['), data), "the header is not JSON");
  expect_fault(file_of(good.substr(0, good.size() - 1) + "," + good.substr(1), data), "has \"a\" twice");
  expect_fault(file_of(one("1"), data), "has no dtype, shape and data_offsets");
  expect_fault(file_of(one(R"({"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]})"), data),
               "has dtype F8_E4M3, which weft does not have");
  expect_fault(file_of(one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), data),
               "a shape that is not a list of sizes");
  expect_fault(file_of(one(R"({"dtype":"F32","shape":[2.5],"data_offsets":[0,8]})"), data),
               "a shape that is not a list of sizes");
  expect_fault(file_of(one(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]})"), data),
               "has 9 dimensions");
  expect_fault(file_of(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"), data),
               "more than 2^63 bytes");
  expect_fault(file_of(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"), data),
               "data_offsets that are not two numbers");
  expect_fault(file_of(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,12]})"), data),
               "lies at bytes 0 to 12, the file has 8");
  expect_fault(file_of(one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"), data),
               "has 8 bytes, its shape [3] as f32 wants 12");
  expect_fault(file_of(good, data + "!"), "1 bytes follow the last tensor");
  expect_fault(file_of(one(R"({"dtype":"U8","shape":[4],"data_offsets":[4,8]})"), data), "leaves a gap of 4 bytes");
  expect_fault(
      file_of(
          R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
          data),
      "tensor \"b\" overlaps");
  expect_fault(file_of(one(R"({"dtype":"BOOL","shape":[8],"data_offsets":[0,8]})"), data), "neither 0 nor 1");
  expect_fault(file_of(R"({"__metadata__":{"a":1}})", ""), "__metadata__ is not an object of strings");
  EXPECT_THROW(load("/no/such/file"), Error);
  EXPECT_THROW(load("/"), Error);
}

TEST(Safetensors, FlippedAndCutBytesNeverCrash) {
  const Folder folder;
  save(folder / "a", {{"x", arange(3)}, {"y", ones({2, 2})}, {"b", ones({3}, boolean)}}, {{"k", "v"}});
  const std::string good = read(folder / "a");
  int refused = 0;
  for (uint64_t i = 0; i < 300; ++i) {
    const PhiloxBlock draw = philox(2, i);
    std::string damaged = good.substr(0, draw[0] % 4 == 0 ? 1 + draw[1] % good.size() : good.size());
    damaged[draw[2] % damaged.size()] ^= static_cast<char>(1 + draw[3] % 255);
    refused += !fault(damaged).empty();
  }
  EXPECT_GT(refused, 150);
}

TEST(Safetensors, WrongInputIsAnError) {
  const Folder folder;
  const Tensor x = ones({2});
  EXPECT_THROW(save(folder / "a", {{"x", x}, {"x", x}}), Error);
  EXPECT_THROW(save(folder / "a", {{"x", Tensor()}}), Error);
  EXPECT_THROW(save(folder / "a", {{"__metadata__", x}}), Error);
  EXPECT_THROW(save(folder / "a", {{"\xff\xfe", x}}), Error);
  EXPECT_THROW(save(folder / "no/folder/a", {{"x", x}}), Error);
  EXPECT_THROW(save(folder.path(), {{"x", x}}), Error);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(Safetensors, AFullDiskLeavesTheOldFile) {
  const Folder folder;
  save(folder / "a", {{"x", ones({2})}});
  const std::string before = read(folder / "a");
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit small{.rlim_cur = 4096, .rlim_max = old.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string text;
  try {
    save(folder / "a", {{"x", ones({10000})}});
  } catch (const Error& error) {
    text = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(text.find("after 4096 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("what was there is unchanged"), std::string::npos) << text;
  EXPECT_EQ(read(folder / "a"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // no temporary file is left
}

TEST(Safetensors, ALinkIsFollowed) {
  const Folder folder;
  save(folder / "real", {{"x", ones({2})}});
  fs::create_symlink("real", folder / "link");
  save(folder / "link", {{"x", zeros({2})}});
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(load(folder / "real")[0].value.to_vector<float>(), (std::vector<float>{0, 0}));
}

}  // namespace
}  // namespace weft
