// Geometry of image transforms.
#include "data/transforms.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tensor/error.h"

namespace weft::data {
namespace {

/// A copy of the image to read from; each thread keeps its buffer.
const float* copy_of(const Image& image) {
  thread_local std::vector<float> buffer;
  buffer.assign(image.pixels, image.pixels + image.size());
  return buffer.data();
}

}  // namespace

double SampleRandom::uniform(double low, double high) {
  const PhiloxBlock bits = philox(seed_, counter_++, stream_);
  return low + (high - low) * to_unit_double(bits[0], bits[1]);
}

int64_t SampleRandom::integer(int64_t low, int64_t high) {
  const PhiloxBlock bits = philox(seed_, counter_++, stream_);
  const auto count = static_cast<uint64_t>(high - low) + 1;
  const uint64_t word = uint64_t{bits[0]} << 32 | bits[1];
  return low + static_cast<int64_t>(static_cast<unsigned __int128>(word) * count >> 64);
}

void shift(const Image& image, int64_t rows, int64_t columns, float fill) {
  const float* from = copy_of(image);
  const int64_t h = image.height, w = image.width;
  const int64_t left = std::clamp<int64_t>(columns, 0, w), right = std::clamp<int64_t>(w + columns, 0, w);
  for (int64_t row = 0; row < image.channels * h; ++row) {
    float* to = image.pixels + row * w;
    const int64_t source = row % h - rows;
    std::fill(to, to + w, fill);
    if (source < 0 || source >= h || left >= right) continue;
    const float* line = from + (row - rows) * w;
    std::copy(line + (left - columns), line + (right - columns), to + left);
  }
}

void rotate(const Image& image, double degrees, float fill) {
  const float* from = copy_of(image);
  const double angle = degrees * std::numbers::pi / 180;
  const auto cosine = static_cast<float>(std::cos(angle)), sine = static_cast<float>(std::sin(angle));
  const int64_t h = image.height, w = image.width;
  const float middle_y = static_cast<float>(h - 1) / 2, middle_x = static_cast<float>(w - 1) / 2;
  for (int64_t c = 0; c < image.channels; ++c) {
    const float* plane = from + c * h * w;
    auto at = [&](int64_t y, int64_t x) { return y < 0 || y >= h || x < 0 || x >= w ? fill : plane[y * w + x]; };
    for (int64_t y = 0; y < h; ++y) {
      for (int64_t x = 0; x < w; ++x) {
        const float dx = static_cast<float>(x) - middle_x, dy = static_cast<float>(y) - middle_y;
        const float from_x = cosine * dx - sine * dy + middle_x, from_y = sine * dx + cosine * dy + middle_y;
        const float floor_x = std::floor(from_x), floor_y = std::floor(from_y);
        const float fx = from_x - floor_x, fy = from_y - floor_y;
        const auto x0 = static_cast<int64_t>(floor_x), y0 = static_cast<int64_t>(floor_y);
        const float top = at(y0, x0) * (1 - fx) + at(y0, x0 + 1) * fx;
        const float bottom = at(y0 + 1, x0) * (1 - fx) + at(y0 + 1, x0 + 1) * fx;
        image.pixels[(c * h + y) * w + x] = top * (1 - fy) + bottom * fy;
      }
    }
  }
}

Transform normalise(float mean, float deviation) {
  WEFT_CHECK(deviation > 0, "normalise", "the deviation must be above 0, got {}", deviation);
  return [=](const Image& image, SampleRandom&) {
    for (int64_t i = 0; i < image.size(); ++i) image.pixels[i] = (image.pixels[i] - mean) / deviation;
  };
}

Transform random_shift(int64_t pixels, float fill) {
  WEFT_CHECK(pixels >= 0, "random_shift", "the number of pixels cannot be negative, got {}", pixels);
  return [=](const Image& image, SampleRandom& random) {
    const int64_t rows = random.integer(-pixels, pixels), columns = random.integer(-pixels, pixels);
    shift(image, rows, columns, fill);
  };
}

Transform random_rotation(double degrees, float fill) {
  WEFT_CHECK(degrees >= 0 && degrees <= 180, "random_rotation", "wants 0 to 180 degrees, got {}", degrees);
  return [=](const Image& image, SampleRandom& random) { rotate(image, random.uniform(-degrees, degrees), fill); };
}

Transform compose(std::vector<Transform> transforms) {
  return [transforms = std::move(transforms)](const Image& image, SampleRandom& random) {
    for (const Transform& transform : transforms) transform(image, random);
  };
}

}  // namespace weft::data
