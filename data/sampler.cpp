// Orders of samples.
#include "data/sampler.h"

#include <algorithm>
#include <numeric>

#include "tensor/error.h"

namespace weft::data {
namespace {

/// 0 … n - 1 in a random order, by Fisher and Yates; the 128-bit product keeps the bias below n 2^-64.
std::vector<int64_t> permutation(int64_t n, const Epoch& epoch, Stream kind = Stream::order) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  const uint64_t stream = stream_of(kind, epoch);
  for (size_t i = order.size(); i-- > 1;) {
    const PhiloxBlock b = philox(epoch.seed, i, stream);
    const uint64_t bits = uint64_t{b[0]} << 32 | b[1];
    std::swap(order[i], order[static_cast<size_t>(static_cast<unsigned __int128>(bits) * (i + 1) >> 64)]);
  }
  return order;
}

/// One rank's hand where the cards are dealt in turn.
class Dealt : public Sampler {
 public:
  Dealt(int64_t n, int64_t rank, int64_t ranks, const DistributedOptions& options)
      : n_(n), rank_(rank), ranks_(ranks), options_(options) {}

  std::vector<int64_t> indices(const Epoch& epoch) const final {
    WEFT_CHECK(epoch.number >= 0 && epoch.seen >= 0, "sampler", "epoch {} after {} samples: neither can be negative",
               epoch.number, epoch.seen);
    const std::vector<int64_t> order = order_of(epoch);
    const int64_t left = std::max<int64_t>(n_ - epoch.seen, 0);
    const int64_t count = share(left);
    std::vector<int64_t> mine(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      mine[static_cast<size_t>(i)] = order[static_cast<size_t>((epoch.seen + rank_ + i * ranks_) % n_)];
    return mine;
  }

  int64_t size() const final { return share(n_); }

 protected:
  /// All samples, in an order common to all ranks.
  virtual std::vector<int64_t> order_of(const Epoch& epoch) const {
    if (options_.shuffle) return permutation(n_, epoch);
    std::vector<int64_t> order(static_cast<size_t>(n_));
    std::iota(order.begin(), order.end(), int64_t{0});
    return order;
  }

 private:
  int64_t share(int64_t n) const {
    if (options_.pad) return (n + ranks_ - 1) / ranks_;
    return n > rank_ ? (n - rank_ + ranks_ - 1) / ranks_ : 0;
  }

  int64_t n_, rank_, ranks_;
  DistributedOptions options_;
};

class Bucketed final : public Dealt {
 public:
  Bucketed(std::vector<int64_t> lengths, const BucketOptions& options)
      : Dealt(static_cast<int64_t>(lengths.size()), options.rank, options.ranks, {.pad = options.pad}),
        lengths_(std::move(lengths)),
        batch_(options.batch),
        pool_(options.pool) {}

 private:
  std::vector<int64_t> order_of(const Epoch& epoch) const override {
    const auto n = static_cast<int64_t>(lengths_.size());
    std::vector<int64_t> sorted = permutation(n, epoch);
    const auto shorter = [&](int64_t a, int64_t b) {
      return lengths_[static_cast<size_t>(a)] < lengths_[static_cast<size_t>(b)];
    };
    const int64_t pool = batch_ > n / pool_ ? n : batch_ * pool_;  // the product may not fit
    for (int64_t begin = 0; begin < n; begin += pool)
      std::stable_sort(sorted.begin() + begin, sorted.begin() + std::min(begin + pool, n), shorter);
    std::vector<int64_t> order;
    for (const int64_t batch : permutation(n / batch_, epoch, Stream::buckets))
      order.insert(order.end(), sorted.begin() + batch * batch_, sorted.begin() + (batch + 1) * batch_);
    order.insert(order.end(), sorted.begin() + n / batch_ * batch_, sorted.end());
    return order;
  }

  std::vector<int64_t> lengths_;
  int64_t batch_, pool_;
};

void check_rank(int64_t rank, int64_t ranks) {
  WEFT_CHECK(ranks >= 1 && rank >= 0 && rank < ranks, "sampler", "rank {} of {} does not exist", rank, ranks);
}

}  // namespace

std::shared_ptr<const Sampler> distributed(int64_t n, int64_t rank, int64_t ranks, const DistributedOptions& options) {
  WEFT_CHECK(n >= 0, "sampler", "the number of samples cannot be negative, got {}", n);
  check_rank(rank, ranks);
  return std::make_shared<Dealt>(n, rank, ranks, options);
}

std::shared_ptr<const Sampler> bucketed(std::vector<int64_t> lengths, const BucketOptions& options) {
  WEFT_CHECK(options.batch >= 1 && options.pool >= 1, "sampler", "batch and pool must be at least 1, got {} and {}",
             options.batch, options.pool);
  check_rank(options.rank, options.ranks);
  return std::make_shared<Bucketed>(std::move(lengths), options);
}

std::shared_ptr<const Sampler> sequential(int64_t n) { return distributed(n, 0, 1, {.shuffle = false}); }
std::shared_ptr<const Sampler> shuffled(int64_t n) { return distributed(n, 0, 1); }

}  // namespace weft::data
