// Random fills and counting: one thread draws one Philox block, so element i gets the words that it gets on the CPU.
#include <cmath>
#include <numbers>

#include "tensor/cuda/gpu.cuh"

namespace weft::WEFT_GPU {
namespace {

// What each fill makes of a block's words. Products are added without being rounded first, as on a CPU.

template <class T>
struct Uniform {
  static constexpr int kPerBlock = 4;
  float low, range;
  __device__ void operator()(const PhiloxBlock& w, T* y) const {
    WEFT_UNROLL
    for (int k = 0; k < 4; ++k) y[k] = static_cast<T>(std::fma(range, to_unit_float(w[k]), low));
  }
};

template <>
struct Uniform<double> {
  static constexpr int kPerBlock = 2;
  double low, range;
  __device__ void operator()(const PhiloxBlock& w, double* y) const {
    WEFT_UNROLL
    for (int k = 0; k < 2; ++k) y[k] = std::fma(range, to_unit_double(w[2 * k], w[2 * k + 1]), low);
  }
};

/// Box and Muller: two uniforms make two normals; 1 - u keeps the logarithm's argument above 0.
template <class C>
__device__ __forceinline__ void two_normals(C u, C v, C mean, C deviation, C& first, C& second) {
  const C r = std::sqrt(C(-2) * std::log(C(1) - u)), angle = C(2) * std::numbers::pi_v<C> * v;
  first = std::fma(deviation * r, std::cos(angle), mean);
  second = std::fma(deviation * r, std::sin(angle), mean);
}

template <class T>
struct Normal {
  static constexpr int kPerBlock = 4;
  float mean, deviation;
  __device__ void operator()(const PhiloxBlock& w, T* y) const {
    WEFT_UNROLL
    for (int k = 0; k < 4; k += 2) {
      float first, second;
      two_normals(to_unit_float(w[k]), to_unit_float(w[k + 1]), mean, deviation, first, second);
      y[k] = static_cast<T>(first);
      y[k + 1] = static_cast<T>(second);
    }
  }
};

template <>
struct Normal<double> {
  static constexpr int kPerBlock = 2;
  double mean, deviation;
  __device__ void operator()(const PhiloxBlock& w, double* y) const {
    two_normals(to_unit_double(w[0], w[1]), to_unit_double(w[2], w[3]), mean, deviation, y[0], y[1]);
  }
};

struct Randint {
  static constexpr int kPerBlock = 2;
  uint64_t low, range;
  __device__ void operator()(const PhiloxBlock& w, int64_t* y) const {
    WEFT_UNROLL
    for (int k = 0; k < 2; ++k)
      y[k] = static_cast<int64_t>(low + __umul64hi(uint64_t{w[2 * k]} << 32 | w[2 * k + 1], range));
  }
};

template <class F, class T>
__global__ void __launch_bounds__(kBlock) draw_kernel(F f, StepValue<Philox> place, int64_t n, bool aligned, T* out) {
  const Philox state = place.get();
  using Chunk = Pack<T, F::kPerBlock>;
  for (int64_t block = grid_index(); block * F::kPerBlock < n; block += grid_size()) {
    Chunk values;
    f(philox(state.seed, state.offset + static_cast<uint64_t>(block)), values.v);
    T* const y = out + block * F::kPerBlock;
    if (aligned && (block + 1) * F::kPerBlock <= n) {
      *reinterpret_cast<Chunk*>(y) = values;
      continue;
    }
    WEFT_UNROLL
    for (int k = 0; k < F::kPerBlock; ++k)
      if (block * F::kPerBlock + k < n) y[k] = values.v[k];
  }
}

template <class T, class F>
void draw(const F& f, Tensor& out, Philox state) {
  WEFT_ASSERT(out.is_contiguous());
  const int64_t n = out.numel();
  if (n == 0) return;
  T* const y = out.data<T>();
  const bool aligned = packs_fit<F::kPerBlock>(y);
  launch(blocks_for(ceil_div(n, F::kPerBlock)), kBlock, 0, draw_kernel<F, T>, f, step_value(state), n, aligned, y);
}

/// Whole numbers wrap.
template <class T>
__global__ void __launch_bounds__(kBlock) count_kernel(uint64_t start, uint64_t step, int64_t n, T* out) {
  for (int64_t i = grid_index(); i < n; i += grid_size())
    out[i] = static_cast<T>(static_cast<int64_t>(start + static_cast<uint64_t>(i) * step));
}

template <class T>
__global__ void __launch_bounds__(kBlock) range_kernel(double start, double step, int64_t n, T* out) {
  for (int64_t i = grid_index(); i < n; i += grid_size())
    out[i] = static_cast<T>(static_cast<compute_t<T>>(std::fma(static_cast<double>(i), step, start)));
}

}  // namespace

void uniform(Tensor& out, double low, double high, Philox state) {
  dispatch_floating("uniform", out.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    draw<T>(Uniform<T>{static_cast<C>(low), static_cast<C>(high - low)}, out, state);
  });
}

void normal(Tensor& out, double mean, double deviation, Philox state) {
  dispatch_floating("normal", out.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    draw<T>(Normal<T>{static_cast<C>(mean), static_cast<C>(deviation)}, out, state);
  });
}

void randint(Tensor& out, int64_t low, int64_t high, Philox state) {
  const auto first = static_cast<uint64_t>(low);
  draw<int64_t>(Randint{first, static_cast<uint64_t>(high) - first}, out, state);
}

void arange(Tensor& out, Scalar start, Scalar step) {
  WEFT_ASSERT(out.is_contiguous());
  const int64_t n = out.numel();
  if (n == 0) return;
  dispatch(out.dtype(), [&]<class T>() {
    T* const y = out.data<T>();
    if constexpr (std::is_integral_v<T>)
      launch(blocks_for(n), kBlock, 0, count_kernel<T>, static_cast<uint64_t>(start.to<int64_t>()),
             static_cast<uint64_t>(step.to<int64_t>()), n, y);
    else
      launch(blocks_for(n), kBlock, 0, range_kernel<T>, start.d, step.d, n, y);
  });
}

}  // namespace weft::WEFT_GPU
