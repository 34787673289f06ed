// The loader: batch k goes through slot k % slots, so order needs no sorting and memory is bounded.
#include "data/loader.h"

#include <fmt/core.h>

#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "data/upload.h"
#include "tensor/error.h"
#include "tensor/threads.h"

namespace weft::data {
namespace {

constexpr int kAheadPerWorker = 2;

/// The default generator as a function of (epoch, first sample) while a batch is made: a dataset that draws from it
/// gives the same numbers on any thread.
class BatchGenerator {
 public:
  BatchGenerator(const Epoch& epoch, int64_t first) : before_(default_generator().state()) {
    const PhiloxBlock b = philox(epoch.seed, static_cast<uint64_t>(first), stream_of(Stream::user, epoch));
    default_generator().seed(uint64_t{b[0]} << 32 | b[1]);
  }
  ~BatchGenerator() { default_generator().set_state(before_); }
  BatchGenerator(const BatchGenerator&) = delete;
  BatchGenerator& operator=(const BatchGenerator&) = delete;

 private:
  Philox before_;
};

int64_t count_batches(int64_t samples, const LoaderOptions& options) {
  return options.drop_last ? samples / options.batch : samples / options.batch + (samples % options.batch != 0);
}

}  // namespace

/// One epoch under way.
class Loader::Run {
 public:
  Run(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, const Epoch& epoch)
      : dataset_(std::move(dataset)), batch_(options.batch), epoch_(epoch), order_(options.sampler->indices(epoch)) {
    batches_ = count_batches(static_cast<int64_t>(order_.size()), options);
    const int64_t workers = std::min<int64_t>(options.workers, batches_);
    slots_.resize(static_cast<size_t>(workers * kAheadPerWorker));
    if (!(options.device == cpu)) upload_.emplace(options.device);
    for (int64_t i = 0; i < workers; ++i) workers_.emplace_back([this](std::stop_token stop) { work(stop); });
  }

  ~Run() {
    for (std::jthread& worker : workers_) worker.request_stop();  // all at once, before the first is waited for
  }

  /// Takes the next batch into `current`; false after the last.
  bool advance() {
    if (!upload_) return take(current);
    if (!ahead_ && !failed_) send_ahead();
    if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
    if (!ahead_) return false;
    current = upload_->take();
    ahead_ = false;
    send_ahead();
    return true;
  }

  Batch current;

 private:
  struct Slot {
    Batch batch;
    std::exception_ptr error;
    bool full = false;
  };

  /// The next batch, in host memory; false after the last.
  bool take(Batch& batch) {
    if (taken_ == batches_) return false;
    if (slots_.empty()) {
      batch = make(taken_++);
      return true;
    }
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[static_cast<size_t>(taken_) % slots_.size()];
    ready_.wait(lock, [&] { return slot.full; });
    slot.full = false;
    batch = std::move(slot.batch);
    ++taken_;
    const std::exception_ptr error = std::exchange(slot.error, nullptr);
    lock.unlock();
    room_.notify_one();
    if (error) std::rethrow_exception(error);
    return true;
  }

  /// Begins the next batch's way to the device. What goes wrong belongs to that batch, not to the one before.
  void send_ahead() {
    try {
      Batch host;
      if (!take(host)) return;
      upload_->start(host);
      ahead_ = true;
    } catch (...) {
      failed_ = std::current_exception();
    }
  }

  Batch make(int64_t number) const {
    const auto begin = static_cast<size_t>(number * batch_);
    const auto count = std::min(static_cast<size_t>(batch_), order_.size() - begin);
    const std::span<const int64_t> indices(order_.data() + begin, count);
    const BatchGenerator generator(epoch_, indices[0]);
    return dataset_->batch(indices, epoch_);
  }

  void work(const std::stop_token& stop) {
    const SingleThreaded alone;
    while (true) {
      int64_t number;
      {
        std::unique_lock lock(mutex_);
        const bool go = room_.wait(
            lock, stop, [&] { return given_ == batches_ || given_ < taken_ + static_cast<int64_t>(slots_.size()); });
        if (!go || stop.stop_requested() || given_ == batches_) return;
        number = given_++;
      }
      Batch batch;
      std::exception_ptr error;
      try {
        batch = make(number);
      } catch (...) {
        error = std::current_exception();
      }
      {
        std::lock_guard lock(mutex_);
        Slot& slot = slots_[static_cast<size_t>(number) % slots_.size()];
        slot = {std::move(batch), error, true};
        if (given_ == batches_) room_.notify_all();
      }
      ready_.notify_one();
    }
  }

  const std::shared_ptr<const Dataset> dataset_;
  const int64_t batch_;
  const Epoch epoch_;
  const std::vector<int64_t> order_;
  int64_t batches_ = 0;

  std::optional<Upload> upload_;
  bool ahead_ = false;         // the next batch is on its way
  std::exception_ptr failed_;  // in place of the next batch

  std::mutex mutex_;
  std::condition_variable ready_;     // a slot was filled
  std::condition_variable_any room_;  // a slot was emptied, or all batches are given out
  std::vector<Slot> slots_;
  int64_t given_ = 0;                  // batches handed to workers
  int64_t taken_ = 0;                  // batches that the consumer has
  std::vector<std::jthread> workers_;  // last, so that they end before what they use
};

Loader::Loader(const Dataset& dataset, const LoaderOptions& options)
    : Loader(std::shared_ptr<const Dataset>(std::shared_ptr<const Dataset>(), &dataset), options) {}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options), next_{.seed = options.seed} {
  WEFT_CHECK(dataset_ != nullptr, "loader", "there is no dataset");
  WEFT_CHECK(options.batch >= 1, "loader", "the batch must be at least 1, got {}", options.batch);
  WEFT_CHECK(options.workers >= 0, "loader", "the number of workers cannot be negative, got {}", options.workers);
  WEFT_CHECK(!options.sampler || !options.shuffle, "loader", "takes either a sampler or shuffle, not both");
  if (!options_.sampler) options_.sampler = options.shuffle ? shuffled(dataset_->size()) : sequential(dataset_->size());
  if (options.drop_last && samples() > 0 && samples() < options.batch)
    fmt::print(stderr,
               "warning: [loader] {} samples do not fill one batch of {}, and drop_last leaves out what is not full: "
               "no batches\n",
               samples(), options.batch);
}

int64_t Loader::samples() const { return options_.sampler->size(); }
int64_t Loader::batches() const { return count_batches(samples(), options_); }

void Loader::set_epoch(int64_t number, int64_t seen) {
  WEFT_CHECK(number >= 0 && seen >= 0, "loader", "epoch {} after {} samples: neither can be negative", number, seen);
  next_.number = number;
  next_.seen = seen;
}

Loader::Iterator Loader::begin() {
  const Epoch epoch = next_;
  next_ = {.seed = options_.seed, .number = epoch.number + 1};
  return Iterator(std::make_shared<Run>(dataset_, options_, epoch));
}

Loader::Iterator::Iterator(std::shared_ptr<Run> run) : run_(std::move(run)) { ++*this; }

Batch&& Loader::Iterator::operator*() const { return std::move(run_->current); }

Loader::Iterator& Loader::Iterator::operator++() {
  if (run_ && !run_->advance()) run_ = nullptr;
  return *this;
}

}  // namespace weft::data
