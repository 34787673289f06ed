// Orders of samples.
#include "data/sampler.h"

#include <algorithm>
#include <numeric>

#include "tensor/error.h"

namespace weft::data {
namespace {

/// 0 … n - 1 in a random order, by Fisher and Yates; the 128-bit product keeps the bias below n 2^-64.
std::vector<int64_t> permutation(int64_t n, const Epoch& epoch) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  const uint64_t stream = stream_of(Stream::order, epoch);
  for (size_t i = order.size(); i-- > 1;) {
    const PhiloxBlock b = philox(epoch.seed, i, stream);
    const uint64_t bits = uint64_t{b[0]} << 32 | b[1];
    std::swap(order[i], order[static_cast<size_t>(static_cast<unsigned __int128>(bits) * (i + 1) >> 64)]);
  }
  return order;
}

/// One rank's hand where the cards are dealt in turn.
class Dealt final : public Sampler {
 public:
  Dealt(int64_t n, int64_t rank, int64_t ranks, const DistributedOptions& options)
      : n_(n), rank_(rank), ranks_(ranks), options_(options) {}

  std::vector<int64_t> indices(const Epoch& epoch) const override {
    WEFT_CHECK(epoch.number >= 0 && epoch.seen >= 0, "sampler", "epoch {} after {} samples: neither can be negative",
               epoch.number, epoch.seen);
    std::vector<int64_t> order(static_cast<size_t>(n_));
    if (options_.shuffle)
      order = permutation(n_, epoch);
    else
      std::iota(order.begin(), order.end(), int64_t{0});
    const int64_t left = std::max<int64_t>(n_ - epoch.seen, 0);
    const int64_t count = share(left);
    std::vector<int64_t> mine(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      mine[static_cast<size_t>(i)] = order[static_cast<size_t>((epoch.seen + rank_ + i * ranks_) % n_)];
    return mine;
  }

  int64_t size() const override { return share(n_); }

 private:
  int64_t share(int64_t n) const {
    if (options_.pad) return (n + ranks_ - 1) / ranks_;
    return n > rank_ ? (n - rank_ + ranks_ - 1) / ranks_ : 0;
  }

  int64_t n_, rank_, ranks_;
  DistributedOptions options_;
};

}  // namespace

std::shared_ptr<const Sampler> distributed(int64_t n, int64_t rank, int64_t ranks, const DistributedOptions& options) {
  WEFT_CHECK(n >= 0, "sampler", "the number of samples cannot be negative, got {}", n);
  WEFT_CHECK(ranks >= 1 && rank >= 0 && rank < ranks, "sampler", "rank {} of {} does not exist", rank, ranks);
  return std::make_shared<Dealt>(n, rank, ranks, options);
}

std::shared_ptr<const Sampler> sequential(int64_t n) { return distributed(n, 0, 1, {.shuffle = false}); }
std::shared_ptr<const Sampler> shuffled(int64_t n) { return distributed(n, 0, 1); }

}  // namespace weft::data
