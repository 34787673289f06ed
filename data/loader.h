// Batches of a dataset, made ahead by worker threads. What comes out, and in which order, does not depend on how many.
#pragma once

#include <iterator>
#include <memory>

#include "data/sampler.h"

namespace weft::data {

struct LoaderOptions {
  int64_t batch = 1;                                 ///< samples a batch; the last one of an epoch may be smaller
  bool shuffle = false;                              ///< a new order each epoch
  std::shared_ptr<const Sampler> sampler = nullptr;  ///< an order of one's own, in place of `shuffle`
  bool drop_last = false;                            ///< leaves out a last batch that is not full
  int workers = 0;    ///< threads that make batches ahead; 0: made when asked for, by the caller
  uint64_t seed = 0;  ///< of the order and of random transforms
  /// Where batches arrive. Beside the CPU, the next one is copied while the current one is worked with.
  Device device = {};
};

/// `for (auto [x, y] : loader)` is one epoch; each such loop is the next one. Leaving a loop early stops its workers.
/// An exception in a worker comes out of the loop, at the batch that it belongs to.
class Loader {
 public:
  /// `dataset` must outlive the loader.
  explicit Loader(const Dataset& dataset, const LoaderOptions& options = {});
  explicit Loader(const Dataset&& dataset, const LoaderOptions& options = {}) = delete;
  explicit Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options = {});

  class Run;
  /// A position in a running epoch. Each batch is handed out once: `*it` gives it away.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&&;

    explicit Iterator(std::shared_ptr<Run> run);
    Batch&& operator*() const;
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.run_ == nullptr; }

   private:
    std::shared_ptr<Run> run_;
  };

  /// Starts the next epoch.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  /// Batches in a whole epoch.
  int64_t batches() const;
  /// Samples in a whole epoch, this rank's.
  int64_t samples() const;
  /// The number of the epoch that the next loop runs.
  int64_t next_epoch() const { return next_.number; }
  /// Makes `number` the epoch of the next loop, which leaves out the first `seen` samples (of all ranks together).
  void set_epoch(int64_t number, int64_t seen = 0);
  const LoaderOptions& options() const { return options_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  Epoch next_;
};

}  // namespace weft::data
