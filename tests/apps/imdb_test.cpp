// The IMDB program as a whole, on a small set of made-up reviews: what it refuses, writes, prints and repeats.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "data/sample_reviews.h"
#include "tests/apps/shell.h"

namespace weft {
namespace {

using namespace testing_files;
using testing_apps::Ended;

/// The reviews that come with Weft as the tree of the original, several times over with a word more each time.
void write_reviews(const std::string& folder, int times) {
  int number = 0;
  for (int i = 0; i < times; ++i)
    for (const data::SampleReview& r : data::sample_reviews()) {
      const std::string kind = folder + (r.test ? "/test/" : "/train/") + (r.positive ? "pos" : "neg");
      fs::create_directories(kind);
      write(kind + fmt::format("/{}_{}.txt", number++, r.positive ? 9 : 2), fmt::format("{} take{}", r.text, i));
    }
}

class ImdbApp : public testing::Test {
 protected:
  ImdbApp() { write_reviews(folder_ / "aclImdb", 8); }

  Ended shell(const std::string& command) const {
    const std::string settings = "export WEFT_CACHE=" + (logs_ / "cache") +
                                 " https_proxy=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9\n"
                                 "imdb() { " IMDB_PROGRAM " \"$@\"; }\n";
    return testing_apps::run_script(settings + command, folder_, logs_);
  }
  Ended imdb(const std::string& options) const { return shell("imdb " + options); }
  Ended train(const std::string& options) const {
    return imdb("--data aclImdb --vocab 500 --max-length 40 --batch 16 --lr 0.003 " + options);
  }
  void refuses(const std::string& options, const std::string& part) const {
    const Ended run = imdb(options);
    EXPECT_EQ(run.code, 2) << options << ": " << run.err;
    EXPECT_NE(run.err.find(part), std::string::npos) << options << ": " << run.err;
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << options << ": " << run.err;
  }

  const Folder folder_, logs_;
};

TEST_F(ImdbApp, RefusesWrongOptions) {
  refuses("--vocab 3 --data aclImdb", "--vocab: wants a whole number from 4 to 1000000, got '3'");
  refuses("--max-length 0 --data aclImdb", "--max-length: wants a whole number from 8 to 100000, got '0'");
  refuses("--model rnn --data aclImdb", "no model of texts is called 'rnn'; there are cnn, lstm, transformer");
  refuses("--schedule cosine --data aclImdb", "--schedule: wants one-cycle or constant, got 'cosine'");
  refuses("\"a film\"", "to judge 'a film', name the weights with --load");
  refuses("--data nowhere", "nowhere");
  refuses("--load nowhere \"a film\"", "nowhere: cannot be opened");
}

TEST_F(ImdbApp, EveryModelLearnsAndJudges) {
  for (const std::string model : {"cnn", "lstm", "transformer"}) {
    SCOPED_TRACE(model);
    const Ended run = train("--epochs 6 --save w --result r --model " + model);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto result = nlohmann::json::parse(read(folder_ / "r"));
    EXPECT_EQ(result["model"], model);
    EXPECT_EQ(result["held_out_accuracy"].size(), 6u);
    EXPECT_GT(result["held_out_accuracy"][result["best_epoch"].get<size_t>() - 1], 80) << run.out;

    const Ended again = imdb("--data aclImdb --eval-only --load w --result e");
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(nlohmann::json::parse(read(folder_ / "e"))["test_loss"], result["test_loss"]);

    const std::string text(data::sample_reviews()[0].text);
    const Ended given = imdb("--load w \"" + text + "\""), piped = shell("echo '" + text + "' | imdb --load w -");
    ASSERT_EQ(given.code, 0) << given.err;
    EXPECT_EQ(given.out, piped.out);
    const double probability = std::stod(given.out);
    EXPECT_EQ(probability > 0.5, data::sample_reviews()[0].positive) << given.out;
  }
}

TEST_F(ImdbApp, EqualSeedsGiveEqualBits) {
  const auto weights = [&](const std::string& options) {
    const Ended run = train("--epochs 2 --save w --threads 2 " + options);
    EXPECT_EQ(run.code, 0) << run.err;
    return read(folder_ / "w");
  };
  const std::string first = weights("--seed 3");
  EXPECT_TRUE(first == weights("--seed 3 --workers 3"));
  EXPECT_FALSE(first == weights("--seed 4"));
}

TEST_F(ImdbApp, SparseEmbeddingsAndBucketsLearnAsWell) {
  for (const std::string options : {"--sparse-embeddings", "--bucket", "--model lstm --bucket --sparse-embeddings"}) {
    const Ended run = train("--epochs 6 --result r " + options);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto result = nlohmann::json::parse(read(folder_ / "r"));
    EXPECT_GT(result["held_out_accuracy"][result["best_epoch"].get<size_t>() - 1], 80) << options << run.out;
  }
}

TEST_F(ImdbApp, WeightsOfOtherWordsAreRefused) {
  ASSERT_EQ(train("--epochs 1 --save w").code, 0);
  write(folder_ / "aclImdb/train/pos/900_9.txt", "other other other words words words words words words words words");
  const Ended run = imdb("--data aclImdb --load w --epochs 1");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("[--load] the weights know "), std::string::npos) << run.err;
  write(folder_ / "plain", "no weights");
  EXPECT_EQ(imdb("--load plain x").code, 2);
}

TEST_F(ImdbApp, HalfADataSetIsRefused) {
  fs::remove_all(folder_ / "aclImdb/test/neg");
  const Ended run = train("--epochs 1");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("test"), std::string::npos) << run.err;
}

TEST_F(ImdbApp, WithoutDataItSaysThatFiguresMeanNothing) {
  const Ended run = imdb("--epochs 1 --batch 8");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("the figures mean nothing"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("not the whole set"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace weft
