// Cleaning and the vocabulary.
#include "data/text.h"

#include <gtest/gtest.h>

#include "tensor/safetensors.h"
#include "tests/data/files.h"
#include "tests/expect_error.h"

namespace weft::data {
namespace {

using Ids = std::vector<int32_t>;

TEST(Clean, WordsAreLowerCaseAndPunctuationSeparates) {
  EXPECT_EQ(clean("A GREAT film!Really"), "a great film really ");
  EXPECT_EQ(clean("well-made, 10/10 (1980s) _yes_ a.b"), "well made 10 10 1980s yes a b ");
  EXPECT_EQ(clean("Don't stop, 'quoted', the dogs' tails; rock`n`roll"), "dont stop quoted the dogs tails rocknroll ");
  EXPECT_EQ(clean(""), "");
  EXPECT_EQ(clean(" \t\n...!? -- "), "");
  EXPECT_EQ(clean("end\r\nnext\vline"), "end next line ");
}

TEST(Clean, TagsAreBlanks) {
  EXPECT_EQ(clean("one<br /><br />two<br>three<BR/>four</i>five"), "one two three four five ");
  EXPECT_EQ(clean("<br /><br />"), "");
  EXPECT_EQ(clean("a <b and c> d < e <3 <"), "a b and c d e 3 ");
  EXPECT_EQ(clean("<br"), "br ");
}

TEST(Clean, BeyondAscii) {
  EXPECT_EQ(clean("CAFÉ Ñandú naïve ÷ 2×3"), "café ñandú naïve 2 3 ");
  EXPECT_EQ(clean("it’s “good” – or… not"), "its good or not ");
  EXPECT_EQ(clean("it\xc2\x92s good\xc2\x85 or\xc2\x97not\xc2\xa0here ¡sí!"), "its good or not here sí ");
  EXPECT_EQ(clean("映画 Привет"), "映画 Привет ");  // other alphabets stay as they are
  EXPECT_EQ(clean("bad\xff\xfe bytes\xc2"), "bad\xff\xfe bytes\xc2 ");
  EXPECT_EQ(clean("cut\xe2\x80"), "cut\xe2\x80 ");
  EXPECT_EQ(clean(std::string("nul\0byte", 8)), "nul byte ");
}

TEST(Clean, MemoryIsUsedAgain) {
  std::string out = "what was here before, and is longer";
  clean("Short.", out);
  EXPECT_EQ(out, "short ");
}

TEST(WordTable, NumbersInOrderOfComing) {
  WordTable table;
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(table.add("word" + std::to_string(i)), i);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(table.find("word" + std::to_string(i)), i);
    EXPECT_EQ(table[i], "word" + std::to_string(i));
  }
  EXPECT_EQ(table.find("word5000"), -1);
  EXPECT_EQ(table.find(""), -1);
  EXPECT_EQ(table.add("word17"), 17);
  EXPECT_EQ(table.size(), 5000);
}

const std::vector<std::string> kTexts{"the film, the END", "a film: the b c", "C"};

TEST(Vocabulary, IdsFallWithFrequencyAndTiesAreAlphabetical) {
  const Vocabulary all = Vocabulary::build(kTexts, 100);
  EXPECT_EQ(all.size(), 9);
  std::vector<std::string_view> words;
  for (int64_t i = 0; i < all.size(); ++i) words.push_back(all.word(i));
  EXPECT_EQ(words,
            (std::vector<std::string_view>{"<pad>", "<start>", "<unknown>", "the", "c", "film", "a", "b", "end"}));
  for (int32_t i = 3; i < all.size(); ++i) EXPECT_EQ(all.id(all.word(i)), i);
  EXPECT_EQ(all.id("never"), Vocabulary::kUnknown);
  EXPECT_EQ(all.id("<pad>"), Vocabulary::kUnknown);
  const Vocabulary five = Vocabulary::build(kTexts, 5);  // ids 0 to 4
  EXPECT_EQ(five.size(), 5);
  EXPECT_EQ(five.id("c"), 4);
  EXPECT_EQ(five.id("film"), Vocabulary::kUnknown);
  EXPECT_EQ(Vocabulary::build({}, 3).size(), 3);
  EXPECT_ERROR(Vocabulary::build(kTexts, 2), "counts the 3 special ids, got 2");
  EXPECT_ERROR(all.word(9), "id 9 is outside of the 9 ids");
}

TEST(Vocabulary, EncodeKeepsTheLastAndPadsOnTheLeft) {
  const Vocabulary v = Vocabulary::build(kTexts, 6);
  EXPECT_EQ(v.ids("The best FILM"), (Ids{1, 3, 2, 5}));
  EXPECT_EQ(v.encode("The best FILM", 6), (Ids{0, 0, 1, 3, 2, 5}));
  EXPECT_EQ(v.encode("The best FILM", 4), (Ids{1, 3, 2, 5}));
  EXPECT_EQ(v.encode("The best FILM", 2), (Ids{2, 5}));
  EXPECT_ERROR(v.encode("x", 0), "at least 1, got 0");
}

// Field case 33: a review that is empty after cleaning.
TEST(Vocabulary, ATextWithoutWordsHasALength) {
  const Vocabulary v = Vocabulary::build(kTexts, 6);
  for (const char* text : {"", "<br /><br />", "!!!"}) {
    EXPECT_EQ(v.ids(text), Ids{1});
    EXPECT_EQ(v.encode(text, 3), (Ids{0, 0, 1}));
  }
}

TEST(Vocabulary, GoesIntoAModelFileAndBack) {
  const testing_files::Folder folder;
  const std::vector<std::string> texts{"the film café the \xff"};
  const Vocabulary v = Vocabulary::build(texts, 100);
  save(folder / "model.safetensors", {{"fc.weight", zeros({2, 2})}, {"vocabulary", v.to_tensor()}});
  for (const Named& entry : load(folder / "model.safetensors")) {
    if (entry.name != "vocabulary") continue;
    const Vocabulary back = Vocabulary::from_tensor(entry.value);
    ASSERT_EQ(back.size(), v.size());
    for (int64_t i = 0; i < v.size(); ++i) EXPECT_EQ(back.word(i), v.word(i));
    EXPECT_EQ(back.ids("the café"), v.ids("the café"));
  }
  EXPECT_EQ(Vocabulary::from_tensor(Vocabulary().to_tensor()).size(), 3);
  auto lines = [](std::string_view text) {
    return from<uint8_t>({reinterpret_cast<const uint8_t*>(text.data()), text.size()},
                         {static_cast<int64_t>(text.size())});
  };
  EXPECT_ERROR(Vocabulary::from_tensor(lines("a\nb")), "cut off");
  EXPECT_ERROR(Vocabulary::from_tensor(lines("a\n\nb\n")), "word 1 is empty");
  EXPECT_ERROR(Vocabulary::from_tensor(lines("a\na\n")), "\"a\" is there twice");
  EXPECT_ERROR(Vocabulary::from_tensor(zeros({3})), "u8 [bytes]");
}

}  // namespace
}  // namespace weft::data
