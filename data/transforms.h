// Changes to one image while its batch is made. What is random about a sample depends on (seed, epoch, index) alone, so
// it is the same whichever thread makes the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/random.h"

namespace weft::data {

/// One pass over the data: what its random parts are a function of, and where it starts.
struct Epoch {
  uint64_t seed = 0;
  int64_t number = 0;
  int64_t seen = 0;  ///< samples of this epoch already used, by all ranks together (resume in mid-epoch)
};

/// Streams of Philox that belong to the data, so that order and augmentation never share a number.
enum class Stream : uint64_t { order = 1, transform = 2, user = 3, buckets = 4 };
constexpr uint64_t stream_of(Stream stream, const Epoch& epoch) {
  return static_cast<uint64_t>(stream) << 56 | static_cast<uint64_t>(epoch.number);
}

/// The random numbers of one sample.
class SampleRandom {
 public:
  SampleRandom(const Epoch& epoch, int64_t index)
      : seed_(epoch.seed), stream_(stream_of(Stream::transform, epoch)), counter_(static_cast<uint64_t>(index) << 20) {}
  /// Uniform in [low, high).
  double uniform(double low, double high);
  /// A whole number in [low, high], each as likely.
  int64_t integer(int64_t low, int64_t high);

 private:
  uint64_t seed_, stream_, counter_;
};

/// One image, row-major [channels, height, width], that a transform changes in place.
struct Image {
  float* pixels;
  int64_t channels, height, width;
  int64_t size() const { return channels * height * width; }
};

using Transform = std::function<void(const Image&, SampleRandom&)>;

/// Moves the content down by `rows` and right by `columns`; what comes in from outside is `fill`.
void shift(const Image& image, int64_t rows, int64_t columns, float fill = 0);
/// Turns the content counter-clockwise about the centre, bilinear; what comes in from outside is `fill`.
void rotate(const Image& image, double degrees, float fill = 0);

/// (v - mean) / deviation.
Transform normalise(float mean, float deviation);
/// `shift` by up to `pixels` in both directions.
Transform random_shift(int64_t pixels, float fill = 0);
/// `rotate` by up to `degrees` either way.
Transform random_rotation(double degrees, float fill = 0);
/// One after another.
Transform compose(std::vector<Transform> transforms);

}  // namespace weft::data
