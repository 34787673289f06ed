// Byte-level BPE: lossless for any bytes, and the same tokens as Hugging Face's tokenizers (tests/golden/bpe_cases.py).
#include "data/bpe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/byte_characters.h"
#include "data/pieces.h"
#include "tensor/random.h"
#include "tests/data/files.h"
#include "tests/expect_error.h"

namespace weft::data {
namespace {

using namespace testing_files;
using Ids = std::vector<int32_t>;
using Texts = std::vector<std::string>;
using Pieces = std::vector<std::string_view>;

const std::string kGolden = WEFT_GOLDEN_DATA "/bpe";

const nlohmann::json& golden() {
  static const nlohmann::json values = nlohmann::json::parse(testing_files::read(kGolden + "/cases.json"));
  return values;
}

TEST(Pieces, FollowTheirPattern) {
  EXPECT_EQ(pieces("I'm here, 12 days"), (Pieces{"I", "'m", " here", ",", " 12", " days"}));
  EXPECT_EQ(pieces("a  b\n\nc \n"), (Pieces{"a", " ", " b", "\n", "\n", "c", " \n"}));
  EXPECT_EQ(pieces("x1y '!'s"), (Pieces{"x", "1", "y", " '!'", "s"}));
  EXPECT_EQ(pieces("  "), (Pieces{"  "}));
  EXPECT_EQ(pieces(""), Pieces());
  EXPECT_EQ(pieces(" \xff\xc3 \xe2\x82"), (Pieces{" \xff\xc3", " \xe2\x82"}));  // no UTF-8
  EXPECT_EQ(pieces("\xed\xa0\x80z\xc0\x80"), (Pieces{"\xed\xa0\x80", "z", "\xc0\x80"}));
}

TEST(Pieces, AreThoseOfTokenizers) {
  for (const auto& entry : golden()["cases"]) {
    const std::string text = entry["text"];
    Texts got;
    for (const std::string_view piece : pieces(text)) got.push_back(to_characters(piece));
    EXPECT_EQ(got, entry["pieces"].get<Texts>()) << text;
  }
}

TEST(ByteCharacters, GoThereAndBack) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  EXPECT_EQ(from_characters(to_characters(all)), all);
  EXPECT_EQ(to_characters(" a\n"), "Ġa\xc4\x8a");
  EXPECT_EQ(from_characters(" "), std::nullopt);
  EXPECT_EQ(from_characters("日"), std::nullopt);
  EXPECT_EQ(from_characters("\xc4"), std::nullopt);
}

TEST(Bpe, EncodesAsTokenizersDoes) {
  const Bpe bpe = Bpe::load(kGolden);
  EXPECT_EQ(bpe.size(), 500);
  for (const auto& entry : golden()["cases"]) {
    const std::string text = entry["text"];
    const Ids ids = bpe.encode(text);
    EXPECT_EQ(ids, entry["ids"].get<Ids>()) << text;
    EXPECT_EQ(bpe.decode(ids), text);
  }
}

TEST(Bpe, TrainsAsTokenizersDoes) {
  const Texts texts{golden()["training"]};
  const Bpe bpe = Bpe::train(texts, {.vocabulary = 500, .special = {}});
  const Folder folder;
  bpe.save(folder.path());
  EXPECT_EQ(testing_files::read(folder / "merges.txt"), testing_files::read(kGolden + "/merges.txt"));
  EXPECT_EQ(nlohmann::json::parse(testing_files::read(folder / "vocab.json")),
            nlohmann::json::parse(testing_files::read(kGolden + "/vocab.json")));
}

TEST(Bpe, SmallExampleByHand) {
  // "ab" 5 times, "abc" 3 times: a b; then ab c; a pair that is there once is not merged.
  const Texts texts{"ab!ab!ab!ab!ab!abc!abc!abc", "xy"};
  const Bpe bpe = Bpe::train(texts, {.vocabulary = 1000, .special = {"<|endoftext|>"}});
  EXPECT_EQ(bpe.size(), 259);
  EXPECT_EQ(bpe.token(256), "ab");
  EXPECT_EQ(bpe.token(257), "abc");
  EXPECT_EQ(bpe.id("<|endoftext|>"), 258);
  EXPECT_EQ(bpe.id("xy"), std::nullopt);
  EXPECT_EQ(bpe.encode("ababc"), (Ids{256, 257}));
  EXPECT_EQ(bpe.decode(std::vector<int32_t>{257, 258}), "abc<|endoftext|>");
  for (const int32_t id : bpe.encode("<|endoftext|>")) EXPECT_NE(id, 258) << "text is not a special token";
  EXPECT_EQ(Bpe::train(texts, {.vocabulary = 257, .special = {}}).size(), 257);
  EXPECT_EQ(Bpe::train({}, {.special = {}}).size(), 256);
}

TEST(Bpe, RepeatedLettersAreMergedFromTheLeft) {
  const Texts texts{"aaaaa", "aaaaa"};
  const Bpe bpe = Bpe::train(texts, {.vocabulary = 300, .special = {}});
  EXPECT_EQ(bpe.token(256), "aa");
  EXPECT_EQ(bpe.token(257), "aaa");  // "aa" and "a", whose ids are smaller than those of "aa" and "aa"
  EXPECT_EQ(bpe.encode("aaaa"), (Ids{256, 256}));
  EXPECT_EQ(bpe.decode(bpe.encode("aaaaaaa")), "aaaaaaa");
}

TEST(Bpe, AnyBytesComeBack) {
  const Bpe bpe = Bpe::load(kGolden);
  std::string text;
  for (uint64_t i = 0; i < 3000; ++i) {
    const PhiloxBlock b = philox(1, i);
    text.clear();
    for (uint32_t k = 0; k < b[0] % 40; ++k) {
      const uint32_t r = philox(2, i * 64 + k)[0];
      text += i % 2 ? static_cast<char>(r) : " '\nste1 \xc3\xa9!\xe2\x80\x89"[r % 15];
    }
    EXPECT_EQ(bpe.decode(bpe.encode(text)), text);
  }
  std::string longest;
  for (int i = 0; i < 100000; ++i) longest += "the";
  EXPECT_EQ(bpe.decode(bpe.encode(longest)), longest);
}

TEST(Bpe, SavesAndLoads) {
  const Folder folder;
  const Texts texts{"to be or not to be, that is the question", std::string("\0\xff\xff\xff\0\xff\xff", 7)};
  const Bpe bpe = Bpe::train(texts, {.vocabulary = 280});
  bpe.save(folder / "new/folder");
  const Bpe back = Bpe::load(folder / "new/folder");
  EXPECT_EQ(back.size(), bpe.size());
  for (const std::string& text : texts) EXPECT_EQ(back.encode(text), bpe.encode(text));
  EXPECT_EQ(back.id("<|endoftext|>"), bpe.size() - 1);
  back.save(folder / "again");
  for (const char* name : {"vocab.json", "merges.txt"})
    EXPECT_EQ(testing_files::read(folder / "again/" + name), testing_files::read(folder / "new/folder/" + name));
}

TEST(Bpe, DamagedFilesAreErrors) {
  const Folder folder;
  const std::string vocabulary = testing_files::read(kGolden + "/vocab.json");
  const std::string merges = testing_files::read(kGolden + "/merges.txt");
  auto expect = [&](const std::string& v, const std::string& m, const std::string& words) {
    write(folder / "vocab.json", v);
    write(folder / "merges.txt", m);
    EXPECT_ERROR(Bpe::load(folder.path()), words);
  };
  auto replaced = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  expect(vocabulary.substr(0, vocabulary.size() / 2), merges, "vocab.json: is no JSON");
  expect("[]", merges, "is no JSON object");
  expect("{}", merges, "no token for the byte 0x00");
  expect(replaced(vocabulary, "\"!\":0", "\"!\":500"), merges,
         "\"!\" has the id 500; 500 tokens want the ids 0 to 499");
  expect(replaced(vocabulary, "\"!\":0", "\"!\":\"0\""), merges, "has the id \"0\"");
  expect(replaced(vocabulary, "\"!\":0", "\"!\":-1"), merges, "has the id -1");
  expect(replaced(vocabulary, "\"!\":0", "\"!\":1"), merges, "which another one has, too");
  expect(replaced(vocabulary, "\"!\":0", "\"日\":0"), merges, "stands for no byte");
  expect(replaced(vocabulary, "\"!\":0", "\"!!!!\":0"), merges, "no token for the byte 0x21");
  expect(vocabulary, replaced(merges, "\n", "\nh\n"), "merges.txt:2: wants two tokens and a blank between them");
  expect(vocabulary, replaced(merges, "\n", "\nh e x\n"), "merges.txt:2: wants two tokens");
  expect(vocabulary, replaced(merges, "\n", "\nz q\n"), "merges.txt:2: \"z q\" or what it makes is not in");
  expect(vocabulary, merges + merges, "\"#version: 0.2\" or what it makes is not in");
  expect(vocabulary, merges + merges.substr(merges.find('\n') + 1), "is there twice");
  EXPECT_ERROR(Bpe::load(folder / "nothing"), "vocab.json: cannot be opened");
  EXPECT_ERROR(Bpe::train({}, {.vocabulary = 256}), "counts 256 bytes and 1 special tokens, got 256");
  EXPECT_ERROR(Bpe::train({}, {.special = {"a"}}), "\"a\" cannot be a special token: texts give it, too");
  EXPECT_ERROR(Bpe().encode("a"), "there is no vocabulary");
  EXPECT_ERROR(Bpe::train({}).decode(std::vector<int32_t>{257}), "id 257 is outside of the 257 tokens");
}

}  // namespace
}  // namespace weft::data
