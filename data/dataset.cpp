// Batches from tensors in memory: gathers rows, one thread each (the loader's workers are the parallelism).
#include "data/dataset.h"

#include <cstring>

#include "tensor/error.h"
#include "tensor/view.h"

namespace weft::data {
namespace {

void check_indices(std::span<const int64_t> indices, int64_t size) {
  for (int64_t i : indices) WEFT_CHECK(i >= 0 && i < size, "dataset", "index {} is outside of the {} samples", i, size);
}

/// Rows of a contiguous tensor.
Tensor gather_rows(const Tensor& from, std::span<const int64_t> indices) {
  Shape sizes = from.sizes();
  sizes[0] = static_cast<int64_t>(indices.size());
  Tensor out = empty(sizes, from.dtype());
  const auto row = static_cast<size_t>(from.bytes() / std::max<int64_t>(from.size(0), 1));
  auto* to = static_cast<char*>(out.raw_data());
  const auto* source = static_cast<const char*>(from.raw_data());
  for (size_t i = 0; row > 0 && i < indices.size(); ++i)
    std::memcpy(to + i * row, source + static_cast<size_t>(indices[i]) * row, row);
  return out;
}

void apply(const std::vector<Transform>& transforms, const Image& image, const Epoch& epoch, int64_t index) {
  SampleRandom random(epoch, index);
  for (const Transform& transform : transforms) transform(image, random);
}

}  // namespace

TensorDataset::TensorDataset(const Tensor& x, const Tensor& y, std::vector<Transform> transforms)
    : transforms_(std::move(transforms)) {
  WEFT_CHECK(x.dim() >= 1 && y.dim() >= 1 && x.size(0) == y.size(0), "dataset",
             "x and y want as many samples each, got {} and {}", str(x.sizes()), str(y.sizes()));
  WEFT_CHECK(x.device() == cpu && y.device() == cpu, "dataset", "x and y must be on the CPU");
  WEFT_CHECK(transforms_.empty() || (x.dim() == 4 && x.dtype() == f32), "dataset",
             "transforms want f32 images [N, C, H, W], got {} {}", name(x.dtype()), str(x.sizes()));
  x_ = raw::contiguous(raw::detach(x));
  y_ = raw::contiguous(raw::detach(y));
}

Batch TensorDataset::batch(std::span<const int64_t> indices, const Epoch& epoch) const {
  check_indices(indices, size());
  Batch batch{gather_rows(x_, indices), gather_rows(y_, indices)};
  if (transforms_.empty()) return batch;
  Image image{batch.x.data<float>(), x_.size(1), x_.size(2), x_.size(3)};
  for (int64_t index : indices) {
    apply(transforms_, image, epoch, index);
    image.pixels += image.size();
  }
  return batch;
}

ImageDataset::ImageDataset(const Tensor& images, const Tensor& labels, const ImageOptions& options)
    : options_(options) {
  WEFT_CHECK((images.dim() == 3 || images.dim() == 4) && images.dtype() == u8, "dataset",
             "images want to be u8 [N, H, W] or [N, C, H, W], got {} {}", name(images.dtype()), str(images.sizes()));
  WEFT_CHECK(labels.dim() == 1 && labels.dtype() == u8 && labels.size(0) == images.size(0), "dataset",
             "labels want to be u8 [{}], got {} {}", images.size(0), name(labels.dtype()), str(labels.sizes()));
  WEFT_CHECK(images.device() == cpu && labels.device() == cpu, "dataset", "images and labels must be on the CPU");
  WEFT_CHECK(options.deviation > 0, "dataset", "the deviation must be above 0, got {}", options.deviation);
  images_ = raw::contiguous(images.dim() == 3 ? raw::unsqueeze(images, 1) : images);
  labels_ = raw::contiguous(labels);
}

ImageDataset ImageDataset::with(std::vector<Transform> transforms) const {
  ImageDataset changed = *this;
  changed.transforms_ = std::move(transforms);
  return changed;
}

Batch ImageDataset::batch(std::span<const int64_t> indices, const Epoch& epoch) const {
  check_indices(indices, size());
  const auto n = static_cast<int64_t>(indices.size());
  Batch batch{empty({n, images_.size(1), images_.size(2), images_.size(3)}), empty({n}, i64)};
  const auto* images = images_.data<uint8_t>();
  const auto* labels = labels_.data<uint8_t>();
  auto* y = batch.y.data<int64_t>();
  Image image{batch.x.data<float>(), images_.size(1), images_.size(2), images_.size(3)};
  const int64_t pixels = image.size();
  const float mean = options_.mean, deviation = options_.deviation;
  for (int64_t i = 0; i < n; ++i, image.pixels += pixels) {
    const int64_t index = indices[static_cast<size_t>(i)];
    const uint8_t* from = images + index * pixels;
    float* __restrict to = image.pixels;
    y[i] = labels[index];
    if (transforms_.empty()) {
      for (int64_t p = 0; p < pixels; ++p) to[p] = (static_cast<float>(from[p]) / 255 - mean) / deviation;
      continue;
    }
    for (int64_t p = 0; p < pixels; ++p) to[p] = static_cast<float>(from[p]) / 255;
    apply(transforms_, image, epoch, index);
    for (int64_t p = 0; p < pixels; ++p) to[p] = (to[p] - mean) / deviation;
  }
  return batch;
}

Subset::Subset(const Dataset& dataset, std::vector<int64_t> indices)
    : dataset_(&dataset), indices_(std::move(indices)) {
  check_indices(indices_, dataset.size());
}

Batch Subset::batch(std::span<const int64_t> indices, const Epoch& epoch) const {
  check_indices(indices, size());
  std::vector<int64_t> inner;
  for (int64_t i : indices) inner.push_back(indices_[static_cast<size_t>(i)]);
  return dataset_->batch(inner, epoch);
}

}  // namespace weft::data
