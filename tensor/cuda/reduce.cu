// Sums, products, moments and norms. Floats are added up a few at a time as they are, then in double; whole numbers in
// 64 bits.
#include "tensor/cuda/reduce.cuh"

#include <cmath>

#include "tensor/functors.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

/// Where a policy writes, in whatever dtype that is.
struct Results {
  void* data;
  DType dtype;

  explicit Results(const Tensor& out) : data(out.defined() ? out.raw_data() : nullptr), dtype(f32) {
    if (out.defined()) dtype = out.dtype();
  }
  template <class T, class A>
  __device__ void put(int64_t at, A value) const {
    static_cast<T*>(data)[at] = static_cast<T>(static_cast<compute_t<T>>(value));
  }
  template <class A>
  __device__ void store(int64_t at, A value) const {
    // clang-format off
    switch (dtype) {
      case DType::f32: return put<float>(at, value);
      case DType::f64: return put<double>(at, value);
      case DType::bf16: return put<BFloat16>(at, value);
      case DType::f16: return put<Float16>(at, value);
      case DType::i32: return put<int32_t>(at, value);
      case DType::i64: return put<int64_t>(at, value);
      case DType::u8: return put<uint8_t>(at, value);
      case DType::boolean: return put<bool>(at, value);
    }
    // clang-format on
  }
};

/// f(0) + f(1) + … + f(N - 1), in pairs.
template <int N, int first = 0, class F>
__device__ __forceinline__ auto pairwise(const F& f) {
  if constexpr (N == 1)
    return f(first);
  else
    return functors::add{}(pairwise<N / 2, first>(f), pairwise<N - N / 2, first + N / 2>(f));
}

/// Plain values, or a function of each, that are added up.
template <class A, class F>
struct SumOf {
  struct State {
    A sum;
  };
  static constexpr bool kShift = false;
  Results out;
  F f;

  __device__ State start() const { return {A(0)}; }
  template <int N, class C, class Places>
  __device__ void add(State& s, const C (&v)[N], Places, C) const {
    const auto of = [&](int i) { return f(v[i]); };
    s.sum = functors::add{}(s.sum, static_cast<A>(pairwise<N>(of)));
  }
  __device__ void merge(State& s, const State& other) const { s.sum = functors::add{}(s.sum, other.sum); }
  template <class C>
  __device__ void store(const State& s, int64_t at, C, int64_t count) const {
    out.store(at, f.result(s.sum, count));
  }
};

struct Total {
  bool average = false;

  template <class T>
  __device__ auto operator()(T v) const {
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(v);
    else
      return v;
  }
  template <class A>
  __device__ A result(A sum, int64_t count) const {
    return average ? sum / static_cast<A>(count) : sum;
  }
};
struct Absolute : Total {
  template <class T>
  __device__ T operator()(T v) const {
    return functors::abs{}(v);
  }
};
/// Squares in double: in float they overflow before the norm does.
struct Squared {
  __device__ double operator()(double v) const { return v * v; }
  __device__ double result(double sum, int64_t) const { return std::sqrt(sum); }
};
struct Power {
  double p;
  __device__ double operator()(double v) const { return std::pow(std::fabs(v), p); }
  __device__ double result(double sum, int64_t) const { return std::pow(sum, 1 / p); }
};

template <class A>
struct Product {
  struct State {
    A product;
  };
  static constexpr bool kShift = false;
  Results out;

  __device__ State start() const { return {A(1)}; }
  template <int N, class C, class Places>
  __device__ void add(State& s, const C (&v)[N], Places, C) const {
    WEFT_UNROLL
    for (int i = 0; i < N; ++i) s.product = functors::mul{}(s.product, static_cast<A>(v[i]));
  }
  __device__ void merge(State& s, const State& other) const { s.product = functors::mul{}(s.product, other.product); }
  template <class C>
  __device__ void store(const State& s, int64_t at, C, int64_t) const {
    out.store(at, s.product);
  }
};

/// Sums of x - shift and of its square. The few values of a call are taken around their own mean, and what that gives
/// is moved to the common shift in double (Chan, Golub and LeVeque 1979), where parts merge by addition.
struct Variance {
  struct State {
    double sum, squares;
  };
  static constexpr bool kShift = true;
  Results out, mean;
  double correction;

  __device__ State start() const { return {0, 0}; }
  template <int N, class C, class Places>
  __device__ void add(State& s, const C (&v)[N], Places, C shift) const {
    const C middle = pairwise<N>([&](int i) { return v[i]; }) * (C(1) / C(N));
    const double rest = pairwise<N>([&](int i) { return v[i] - middle; });
    const double squares = pairwise<N>([&](int i) { return (v[i] - middle) * (v[i] - middle); });
    const double move = static_cast<double>(middle) - static_cast<double>(shift);
    s.sum += N * move + rest;
    s.squares += squares + move * (2 * rest + N * move);
  }
  __device__ void merge(State& s, const State& other) const {
    s.sum += other.sum;
    s.squares += other.squares;
  }
  template <class C>
  __device__ void store(const State& s, int64_t at, C shift, int64_t count) const {
    const double n = static_cast<double>(count), divisor = n - correction;
    const double squares = s.squares - s.sum * s.sum / n;
    out.store(at, !(divisor > 0) ? static_cast<double>(NAN) : (squares < 0 ? 0 : squares) / divisor);
    if (mean.data) mean.store(at, static_cast<double>(shift) + s.sum / n);
  }
};

/// True where any value is; of the negated values, where not all are.
template <bool negated>
struct AnyOf {
  struct State {
    uint32_t found;
  };
  static constexpr bool kShift = false;
  Results out;

  __device__ State start() const { return {0}; }
  template <int N, class C, class Places>
  __device__ void add(State& s, const C (&v)[N], Places, C) const {
    WEFT_UNROLL
    for (int i = 0; i < N; ++i) s.found |= (v[i] == C(0)) == negated;
  }
  __device__ void merge(State& s, const State& other) const { s.found |= other.found; }
  template <class C>
  __device__ void store(const State& s, int64_t at, C, int64_t) const {
    out.store(at, (s.found != 0) != negated);
  }
};

// The rarer reductions are compiled for the widest types only.
Tensor widened(const Tensor& x) { return x.dtype() == f64 ? x : raw::to(x, f32); }
template <class F>
void dispatch_wide(const Tensor& x, const F& f) {
  if (x.dtype() == f64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

template <class T, class A, class F>
void sum_of(const F& f, const Tensor& x, const Tensor& out) {
  reduce<T>(SumOf<A, F>{Results(out), f}, x, out);
}

}  // namespace

void sum(const Tensor& x, Tensor& out) {
  dispatch(x.dtype(), [&]<class T>() {
    using Read = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
    sum_of<Read, sum_t<T>>(Total{}, x, out);
  });
}

void mean(const Tensor& x, Tensor& out) {
  dispatch_floating("mean", x.dtype(), [&]<class T>() { sum_of<T, double>(Total{.average = true}, x, out); });
}

void prod(const Tensor& x, Tensor& out) {
  const Tensor wide = is_floating(x.dtype()) ? widened(x) : raw::to(x, i64);
  if (wide.dtype() == i64)
    reduce<int64_t>(Product<int64_t>{Results(out)}, wide, out);
  else
    dispatch_wide(wide, [&]<class T>() { reduce<T>(Product<double>{Results(out)}, wide, out); });
}

void var(const Tensor& x, double correction, Tensor& out, Tensor& mean_out) {
  WEFT_ASSERT(!mean_out.defined() || mean_out.strides() == out.strides());
  dispatch_floating("var", x.dtype(), [&]<class T>() {
    reduce<T>(Variance{Results(out), Results(mean_out), correction}, x, out);
  });
}

void any(const Tensor& x, Tensor& out) { reduce<uint8_t>(AnyOf<false>{Results(out)}, raw::to(x, boolean), out); }

void all(const Tensor& x, Tensor& out) { reduce<uint8_t>(AnyOf<true>{Results(out)}, raw::to(x, boolean), out); }

void norm(const Tensor& x, double p, Tensor& out) {
  if (p == 2) return dispatch_floating("norm", x.dtype(), [&]<class T>() { sum_of<T, double>(Squared{}, x, out); });
  const Tensor wide = widened(x);
  dispatch_wide(wide, [&]<class T>() {
    if (p == 1)
      sum_of<T, double>(Absolute{}, wide, out);
    else
      sum_of<T, double>(Power{p}, wide, out);
  });
}

}  // namespace weft::WEFT_GPU
