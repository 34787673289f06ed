// Sums, products, moments and norms. Floating values accumulate in double (plain sums of floats after short pieces in
// float), whole numbers in 64 bits.
#include "tensor/cpu/reduce.h"

#include <cmath>
#include <limits>

#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

template <class T>
using sum_t = std::conditional_t<FloatingElement<T>, double, int64_t>;

template <class A>
struct Sum : ReducePolicy<A> {
  static constexpr bool kPlainSum = true;
  template <class V>
  void add(A& a, A&, V x, A) const {
    a += static_cast<A>(x);
  }
  void merge(A& a, A&, A c, A) const { a += c; }
  A value(A a, A, A, int64_t) const { return a; }
};

struct Mean : Sum<double> {
  double value(double a, double, double, int64_t n) const { return a / static_cast<double>(n); }
};

template <class A>
struct Product : ReducePolicy<A> {
  A first() const { return A(1); }
  template <class V>
  void add(A& a, A&, V x, A) const {
    a *= static_cast<A>(x);
  }
  void merge(A& a, A&, A c, A) const { a *= c; }
  A value(A a, A, A, int64_t) const { return a; }
};

/// Sums of x - shift and of its square.
struct Variance : ReducePolicy<double> {
  static constexpr bool kShift = true, kSecond = true;
  double correction;
  explicit Variance(double c) : correction(c) {}
  template <class V>
  void add(double& a, double& b, V x, double shift) const {
    const double d = static_cast<double>(x) - shift;
    a += d;
    b += d * d;
  }
  void merge(double& a, double& b, double c, double d) const {
    a += c;
    b += d;
  }
  double value(double a, double b, double, int64_t n) const {
    const double count = static_cast<double>(n), divisor = count - correction;
    if (!(divisor > 0)) return std::numeric_limits<double>::quiet_NaN();
    const double squares = b - a * a / count;
    return (squares < 0 ? 0 : squares) / divisor;
  }
  double second_value(double a, double, double shift, int64_t n) const { return shift + a / static_cast<double>(n); }
};

struct Any : ReducePolicy<uint8_t> {
  template <class V>
  void add(uint8_t& a, uint8_t&, V x, uint8_t) const {
    a = static_cast<uint8_t>(a | (x != V(0)));
  }
  void merge(uint8_t& a, uint8_t&, uint8_t c, uint8_t) const { a = a | c; }
  uint8_t value(uint8_t a, uint8_t, uint8_t, int64_t) const { return a; }
};

struct All : ReducePolicy<uint8_t> {
  uint8_t first() const { return 1; }
  template <class V>
  void add(uint8_t& a, uint8_t&, V x, uint8_t) const {
    a = static_cast<uint8_t>(a & (x != V(0)));
  }
  void merge(uint8_t& a, uint8_t&, uint8_t c, uint8_t) const { a = a & c; }
  uint8_t value(uint8_t a, uint8_t, uint8_t, int64_t) const { return a; }
};

struct Norm2 : Sum<double> {
  static constexpr bool kPlainSum = false;
  template <class V>
  void add(double& a, double&, V x, double) const {
    const auto v = static_cast<double>(x);
    a += v * v;
  }
  double value(double a, double, double, int64_t) const { return std::sqrt(a); }
};

struct Norm1 : Sum<double> {
  static constexpr bool kPlainSum = false;
  template <class V>
  void add(double& a, double&, V x, double) const {
    a += std::fabs(static_cast<double>(x));
  }
};

struct NormP : Sum<double> {
  static constexpr bool kPlainSum = false;
  double p;
  explicit NormP(double exponent) : p(exponent) {}
  template <class V>
  void add(double& a, double&, V x, double) const {
    a += std::pow(std::fabs(static_cast<double>(x)), p);
  }
  double value(double a, double, double, int64_t) const { return std::pow(a, 1 / p); }
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

}  // namespace

void sum(const Tensor& x, Tensor& out) {
  dispatch(x.dtype(), [&]<class T>() { reduce<T>(Sum<sum_t<T>>{}, x, {out}); });
}

void mean(const Tensor& x, Tensor& out) {
  dispatch_floating("mean", x.dtype(), [&]<class T>() { reduce<T>(Mean{}, x, {out}); });
}

void prod(const Tensor& x, Tensor& out) {
  const Tensor wide = is_floating(x.dtype()) ? widened(x) : raw::to(x, i64);
  if (wide.dtype() == i64)
    reduce<int64_t>(Product<int64_t>{}, wide, {out});
  else
    dispatch_wide(wide, [&]<class T>() { reduce<T>(Product<double>{}, wide, {out}); });
}

void var(const Tensor& x, double correction, Tensor& out, Tensor& mean_out) {
  WEFT_ASSERT(!mean_out.defined() || mean_out.strides() == out.strides());
  dispatch_floating("var", x.dtype(), [&]<class T>() { reduce<T>(Variance(correction), x, {out, &mean_out}); });
}

void any(const Tensor& x, Tensor& out) { reduce<bool>(Any{}, raw::to(x, boolean), {out}); }

void all(const Tensor& x, Tensor& out) { reduce<bool>(All{}, raw::to(x, boolean), {out}); }

void norm(const Tensor& x, double p, Tensor& out) {
  if (p == 2) return dispatch_floating("norm", x.dtype(), [&]<class T>() { reduce<T>(Norm2{}, x, {out}); });
  const Tensor wide = widened(x);
  dispatch_wide(wide, [&]<class T>() {
    if (p == 1)
      reduce<T>(Norm1{}, wide, {out});
    else
      reduce<T>(NormP(p), wide, {out});
  });
}

}  // namespace weft::cpu_kernels
