// In which order, and by which rank, samples are seen. An order is a pure function of (seed, epoch): nothing to keep,
// nothing to forget to set, and a resumed run finds its place.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "data/dataset.h"

namespace weft::data {

class Sampler {
 public:
  virtual ~Sampler() = default;
  /// The samples of one epoch, in order, after the first `epoch.seen`.
  virtual std::vector<int64_t> indices(const Epoch& epoch) const = 0;
  /// How many a whole epoch has.
  virtual int64_t size() const = 0;
};

/// 0, 1, … n - 1.
std::shared_ptr<const Sampler> sequential(int64_t n);
/// A new order of 0 … n - 1 in each epoch.
std::shared_ptr<const Sampler> shuffled(int64_t n);

struct DistributedOptions {
  bool shuffle = true;
  /// What happens where the ranks do not divide the samples. True: the order goes round to its start, so that every
  /// rank has as many and no collective waits for ever; fewer than `ranks` samples are seen twice. False: no sample
  /// twice, the last ranks have one fewer; for evaluation.
  bool pad = true;
};

/// The share of one rank: positions rank, rank + ranks, … of an order common to all, which changes with the epoch.
/// Shares are disjoint (but for padding) and cover the data. Since padding stands in the last row of that deal alone, a
/// loader that drops its last batch drops the copies first: no sample is lost while another is seen twice.
std::shared_ptr<const Sampler> distributed(int64_t n, int64_t rank, int64_t ranks,
                                           const DistributedOptions& options = {});
inline std::shared_ptr<const Sampler> distributed(const Dataset& dataset, int64_t rank, int64_t ranks,
                                                  const DistributedOptions& options = {}) {
  return distributed(dataset.size(), rank, ranks, options);
}

struct BucketOptions {
  int64_t batch = 64;  ///< samples of a batch, of all ranks together
  int64_t pool = 100;  ///< batches among which samples of like length are grouped; more: less padding, less random
  int64_t rank = 0, ranks = 1;
  bool pad = true;  ///< as in DistributedOptions
};

/// An order in which the samples of a batch have like lengths (`lengths[i]` is sample i's), for datasets that pad to
/// the longest of a batch. In each epoch the samples are shuffled, each run of `pool` batches is sorted by length and
/// cut into batches, and the batches are shuffled; one that is not full stays last. All from (seed, epoch), as
/// `shuffled`. With several ranks `batch` is the global batch, whose samples are dealt to the ranks in turn.
std::shared_ptr<const Sampler> bucketed(std::vector<int64_t> lengths, const BucketOptions& options = {});

}  // namespace weft::data
