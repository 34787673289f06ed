// Rotary positions: a thread turns one pair, its angle computed in double so that late positions lose nothing.
#include <cmath>

#include "tensor/cuda/gpu.cuh"

namespace weft::WEFT_GPU {
namespace {

/// Row (b, h, t) of an operand.
struct RowPlaces {
  int64_t batch, head, row;
  explicit RowPlaces(const Tensor& x) : batch(x.strides()[0]), head(x.strides()[1]), row(x.strides()[2]) {}
  __device__ int64_t at(int64_t b, int64_t h, int64_t t) const { return b * batch + h * head + t * row; }
};

/// cosines and sines [T, pairs] of all angles.
template <class C>
__global__ void __launch_bounds__(kBlock)
    angles_kernel(int64_t count, int64_t pairs, RotaryParameters p, bool back, C* cosines, C* sines) {
  for (int64_t i = grid_index(); i < count; i += grid_size()) {
    const double rate = ::pow(p.base, -static_cast<double>(i % pairs) / static_cast<double>(pairs));
    const double angle = static_cast<double>(p.offset + i / pairs) * rate;
    cosines[i] = static_cast<C>(::cos(angle));
    sines[i] = static_cast<C>(back ? -::sin(angle) : ::sin(angle));
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    rotary_kernel(int64_t count, int64_t heads, int64_t length, int64_t pairs, bool interleaved, const T* x,
                  RowPlaces from, const compute_t<T>* cosines, const compute_t<T>* sines, T* out, RowPlaces to) {
  using C = compute_t<T>;
  for (int64_t k = grid_index(); k < count; k += grid_size()) {
    const int64_t i = k % pairs, row = k / pairs, t = row % length, h = row / length % heads, b = row / length / heads;
    const int64_t one = interleaved ? 2 * i : i, other = interleaved ? 2 * i + 1 : i + pairs;
    const C c = cosines[t * pairs + i], s = sines[t * pairs + i];
    const T* const in = x + from.at(b, h, t);
    const C a = static_cast<C>(in[one]), o = static_cast<C>(in[other]);
    T* const y = out + to.at(b, h, t);
    y[one] = static_cast<T>(a * c - o * s);
    y[other] = static_cast<T>(a * s + o * c);
  }
}

}  // namespace

void rotary(const Tensor& x, const RotaryParameters& parameters, bool back, Tensor& out) {
  if (x.numel() == 0) return;
  const int64_t heads = x.sizes()[1], length = x.sizes()[2], pairs = x.sizes()[3] / 2, count = x.numel() / 2;
  dispatch_floating("rotary", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const TensorOptions options(dtype_of<C>::value, x.device());
    Tensor cosines = empty({length, pairs}, options), sines = empty({length, pairs}, options);
    launch(blocks_for(length * pairs), kBlock, 0, angles_kernel<C>, length * pairs, pairs, parameters, back,
           cosines.data<C>(), sines.data<C>());
    launch(blocks_for(count), kBlock, 0, rotary_kernel<T>, count, heads, length, pairs, parameters.interleaved,
           x.data<T>(), RowPlaces(x), cosines.data<C>(), sines.data<C>(), out.data<T>(), RowPlaces(out));
  });
}

}  // namespace weft::WEFT_GPU
