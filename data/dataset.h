// Samples by index, in memory. A dataset makes whole batches, so that one vectorised loop fills a tensor.
#pragma once

#include <span>
#include <vector>

#include "data/transforms.h"
#include "tensor/tensor.h"

namespace weft::data {

/// Inputs and targets of some samples: `auto [x, y] = …`.
struct Batch {
  Tensor x, y;
};

/// The base of all data sets. `batch` is called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// The number of samples.
  virtual int64_t size() const = 0;
  /// The samples at `indices`, stacked in that order; anything random about a sample comes from (epoch, its index).
  virtual Batch batch(std::span<const int64_t> indices, const Epoch& epoch) const = 0;
};

/// x [N, …] and y [N, …] of any dtype; the transforms want x to be f32 [N, C, H, W].
class TensorDataset : public Dataset {
 public:
  TensorDataset(const Tensor& x, const Tensor& y, std::vector<Transform> transforms = {});
  int64_t size() const override { return x_.size(0); }
  Batch batch(std::span<const int64_t> indices, const Epoch& epoch) const override;

 private:
  Tensor x_, y_;
  std::vector<Transform> transforms_;
};

struct ImageOptions {
  float mean = 0;  ///< of pixel values in [0, 1]
  float deviation = 1;
};

/// Images kept as bytes; a batch is x f32 [n, C, H, W] = (v / 255 - mean) / deviation and y i64 [n].
class ImageDataset : public Dataset {
 public:
  /// images u8 [N, H, W] or [N, C, H, W]; labels u8 [N].
  ImageDataset(const Tensor& images, const Tensor& labels, const ImageOptions& options = {});
  /// This data (shared, not copied) with transforms for augmentation; they see pixel values in [0, 1].
  ImageDataset with(std::vector<Transform> transforms) const;
  int64_t size() const override { return images_.size(0); }
  Batch batch(std::span<const int64_t> indices, const Epoch& epoch) const override;

  /// u8 [N, C, H, W].
  const Tensor& images() const { return images_; }
  /// u8 [N].
  const Tensor& labels() const { return labels_; }

 private:
  Tensor images_, labels_;
  ImageOptions options_;
  std::vector<Transform> transforms_;
};

/// The samples of `dataset` at `indices`; `dataset` must outlive it.
class Subset : public Dataset {
 public:
  Subset(const Dataset& dataset, std::vector<int64_t> indices);
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  Batch batch(std::span<const int64_t> indices, const Epoch& epoch) const override;
  /// Where each sample is in the whole dataset.
  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  const Dataset* dataset_;
  std::vector<int64_t> indices_;
};

}  // namespace weft::data
