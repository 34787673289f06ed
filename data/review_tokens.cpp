// Tokenising on several threads: each has words and numbers of its own, which are made one at the end.
#include "data/review_tokens.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "data/bytes.h"
#include "tensor/error.h"

namespace weft::data {
namespace {

constexpr size_t kWaiting = 16;  // portions between readers and tokenisers

/// Portions on their way from readers to tokenisers. The first exception on any thread ends all of them.
class Queue {
 public:
  explicit Queue(size_t readers) : readers_(readers) {}

  /// False where there is no use in going on.
  bool push(std::vector<Review> portion) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return portions_.size() < kWaiting || error_; });
    if (error_) return false;
    portions_.push_back(std::move(portion));
    ready_.notify_one();
    return true;
  }
  void reader_ends() {
    const std::lock_guard lock(mutex_);
    --readers_;
    ready_.notify_all();
  }
  std::optional<std::vector<Review>> pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return !portions_.empty() || readers_ == 0 || error_; });
    if (error_ || portions_.empty()) return std::nullopt;
    std::vector<Review> portion = std::move(portions_.front());
    portions_.pop_front();
    room_.notify_one();
    return portion;
  }
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    ready_.notify_all();
    room_.notify_all();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable room_, ready_;
  std::deque<std::vector<Review>> portions_;
  size_t readers_;
  std::exception_ptr error_;
};

/// What one thread tokenised, in numbers of its own.
struct Share {
  struct Text {
    Review review;  // without its text
    size_t begin, end;
  };
  WordTable words;
  std::vector<int64_t> counts;  // in training reviews
  std::vector<int32_t> numbers;
  std::vector<Text> texts;

  void add(Review review, std::string& cleaned) {
    if (!review.path.empty()) review.text = read_whole(review.path, "imdb");
    clean(review.text, cleaned);
    review.text = {};
    const size_t begin = numbers.size();
    for_each_word(cleaned, [&](std::string_view word) {
      const int32_t number = words.add(word);
      if (static_cast<size_t>(number) == counts.size()) counts.push_back(0);
      counts[static_cast<size_t>(number)] += !review.test;
      numbers.push_back(number);
    });
    texts.push_back({std::move(review), begin, numbers.size()});
  }
};

std::vector<Share> tokenize_shares(std::span<const std::string> sources, int threads) {
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<Share> shares(static_cast<size_t>(threads));
  Queue queue(sources.size());
  {
    std::vector<std::jthread> workers;
    for (const std::string& source : sources)
      workers.emplace_back([&] {
        try {
          read_reviews(source, [&](std::vector<Review> portion) { return queue.push(std::move(portion)); });
        } catch (...) {
          queue.fail(std::current_exception());
        }
        queue.reader_ends();
      });
    for (Share& share : shares)
      workers.emplace_back([&] {
        try {
          std::string cleaned;
          while (auto portion = queue.pop())
            for (Review& review : *portion) share.add(std::move(review), cleaned);
        } catch (...) {
          queue.fail(std::current_exception());
        }
      });
  }
  queue.rethrow();
  return shares;
}

}  // namespace

ReviewTokens tokenize_reviews(std::span<const std::string> sources, int threads) {
  const std::vector<Share> shares = tokenize_shares(sources, threads);

  WordTable all;
  std::vector<int64_t> counts;
  std::vector<std::vector<int32_t>> numbers(shares.size());  // of each share's words, among all
  for (size_t s = 0; s < shares.size(); ++s)
    for (int32_t i = 0; i < shares[s].words.size(); ++i) {
      const int32_t number = all.add(shares[s].words[i]);
      counts.resize(static_cast<size_t>(all.size()));
      counts[static_cast<size_t>(number)] += shares[s].counts[static_cast<size_t>(i)];
      numbers[s].push_back(number);
    }
  ReviewTokens tokens;
  std::vector<int32_t> ids(counts.size(), Vocabulary::kUnknown);
  for (const int32_t number : by_frequency(all, counts))
    ids[static_cast<size_t>(number)] = tokens.words.add(all[number]) + Vocabulary::kFirstWord;

  struct Place {
    size_t share;
    const Share::Text* text;
  };
  std::vector<Place> places;
  for (size_t s = 0; s < shares.size(); ++s)
    for (const Share::Text& text : shares[s].texts) places.push_back({s, &text});
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.text->review.key() < b.text->review.key(); });

  auto train = std::make_shared<TextCorpus>(), test = std::make_shared<TextCorpus>();
  std::vector<int32_t> text_ids;
  const Review* before = nullptr;
  for (const auto& [s, text] : places) {
    const Review& review = text->review;
    WEFT_CHECK(!before || before->key() != review.key(), "imdb", "review {}/{}/{} is there twice",
               review.test ? "test" : "train", review.positive ? "pos" : "neg", review.file);
    before = &review;
    text_ids.assign(1, Vocabulary::kStart);
    for (size_t i = text->begin; i < text->end; ++i)
      text_ids.push_back(ids[static_cast<size_t>(numbers[s][static_cast<size_t>(shares[s].numbers[i])])]);
    (review.test ? test : train)->add(text_ids, review.positive);
    tokens.counts.add(review);
  }
  tokens.train = std::move(train);
  tokens.test = std::move(test);
  return tokens;
}

}  // namespace weft::data
