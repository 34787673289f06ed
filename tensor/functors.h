// What each elementwise kernel computes for one element, as one functor each, shared by all devices. The 16-bit types
// arrive here as float.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "tensor/host_device.h"

namespace weft::functors {

inline constexpr double kSqrtHalf = 0.70710678118654752440;
inline constexpr double kInvSqrt2Pi = 0.39894228040143267794;
inline constexpr double kSqrt2OverPi = 0.79788456080286535588;

}  // namespace weft::functors

#ifdef WEFT_GPU
#include "tensor/cuda/math.cuh"
#else
#include "tensor/cpu/math.h"
#endif

namespace weft::functors {

/// The type in which T's sums and products are taken: signed whole numbers wrap, for which C++ has only unsigned ones.
template <class T>
struct modular {
  using type = T;
};
template <>
struct modular<int32_t> {
  using type = uint32_t;
};
template <>
struct modular<int64_t> {
  using type = uint64_t;
};
template <class T>
using modular_t = typename modular<T>::type;

/// x < 0, which asks nothing of a type that knows no sign.
template <class T>
WEFT_HD bool is_negative(T x) {
  if constexpr (std::is_unsigned_v<T>)
    return false;
  else
    return x < T(0);
}

// clang-format off
struct neg { template <class T> WEFT_HD T operator()(T x) const { return static_cast<T>(-static_cast<modular_t<T>>(x)); } };
struct abs { template <class T> WEFT_HD T operator()(T x) const { return is_negative(x) ? neg{}(x) : x == T(0) ? T(0) : x; } };
struct square {
  template <class T> WEFT_HD T operator()(T x) const {
    return static_cast<T>(static_cast<modular_t<T>>(x) * static_cast<modular_t<T>>(x));
  }
};
struct exp { template <class T> WEFT_HD T operator()(T x) const { return math::exp(x); } };
struct log { template <class T> WEFT_HD T operator()(T x) const { return math::log(x); } };
struct sqrt { template <class T> WEFT_HD T operator()(T x) const { return std::sqrt(x); } };
struct rsqrt { template <class T> WEFT_HD T operator()(T x) const { return T(1) / std::sqrt(x); } };
struct sin { template <class T> WEFT_HD T operator()(T x) const { return std::sin(x); } };
struct cos { template <class T> WEFT_HD T operator()(T x) const { return std::cos(x); } };
struct erf { template <class T> WEFT_HD T operator()(T x) const { return math::erf(x); } };
struct sigmoid { template <class T> WEFT_HD T operator()(T x) const { return math::sigmoid(x); } };
struct tanh { template <class T> WEFT_HD T operator()(T x) const { return math::tanh(x); } };
/// NaN stays NaN.
struct relu { template <class T> WEFT_HD T operator()(T x) const { return is_negative(x) ? T(0) : x; } };
/// x · Φ(x) with the normal distribution function (Hendrycks and Gimpel 2016).
struct gelu {
  template <class T> WEFT_HD T operator()(T x) const { return T(0.5) * x * (T(1) + math::erf(x * T(kSqrtHalf))); }
};
/// The same paper's approximation by tanh.
struct gelu_tanh {
  template <class T> WEFT_HD T operator()(T x) const {
    return T(0.5) * x * (T(1) + math::tanh(T(kSqrt2OverPi) * (x + T(0.044715) * x * x * x)));
  }
};
struct silu { template <class T> WEFT_HD T operator()(T x) const { return x * math::sigmoid(x); } };
/// log(1 + e^x) without overflow.
struct softplus {
  template <class T> WEFT_HD T operator()(T x) const {
    return (x > T(0) ? x : T(0)) + math::log1p_unit(math::exp(x > T(0) ? -x : x));
  }
};
struct sign { template <class T> WEFT_HD T operator()(T x) const { return static_cast<T>((x > T(0)) - is_negative(x)); } };

struct affine {
  double scale, shift;
  template <class T> WEFT_HD T operator()(T x) const { return x * static_cast<T>(scale) + static_cast<T>(shift); }
};
struct cube { template <class T> WEFT_HD T operator()(T x) const { return x * x * x; } };
struct fourth_power { template <class T> WEFT_HD T operator()(T x) const { return (x * x) * (x * x); } };
struct pow_scalar {
  double exponent;
  template <class T> WEFT_HD T operator()(T x) const { return static_cast<T>(std::pow(x, static_cast<T>(exponent))); }
};
/// NaN stays NaN.
struct clamp {
  double low, high;
  template <class T> WEFT_HD T operator()(T x) const {
    return x < static_cast<T>(low) ? static_cast<T>(low) : x > static_cast<T>(high) ? static_cast<T>(high) : x;
  }
};
struct leaky_relu {
  double slope;
  template <class T> WEFT_HD T operator()(T x) const { return x < T(0) ? x * static_cast<T>(slope) : x; }
};

struct add {
  template <class T> WEFT_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<modular_t<T>>(a) + static_cast<modular_t<T>>(b));
  }
};
struct sub {
  template <class T> WEFT_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<modular_t<T>>(a) - static_cast<modular_t<T>>(b));
  }
};
struct mul {
  template <class T> WEFT_HD T operator()(T a, T b) const {
    return static_cast<T>(static_cast<modular_t<T>>(a) * static_cast<modular_t<T>>(b));
  }
};
/// Whole numbers truncate toward zero; the op refuses a zero divisor there. The machine's division traps where the least
/// number is divided by -1.
struct div {
  template <class T> WEFT_HD T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      if (b == T(-1)) return neg{}(a);
    }
    return static_cast<T>(a / b);
  }
};
struct pow { template <class T> WEFT_HD T operator()(T a, T b) const { return static_cast<T>(std::pow(a, b)); } };
/// NaN in either operand gives NaN.
struct maximum { template <class T> WEFT_HD T operator()(T a, T b) const { return a > b || a != a ? a : b; } };
struct minimum { template <class T> WEFT_HD T operator()(T a, T b) const { return a < b || a != a ? a : b; } };

// Where a slope can be infinite or NaN, a gradient of 0 stays 0: a branch that was not taken and an output that nobody
// used say nothing, and 0 · ∞ would.
struct chain { template <class T> WEFT_HD T operator()(T dy, T slope) const { return dy == T(0) ? T(0) : dy * slope; } };
struct chain_div { template <class T> WEFT_HD T operator()(T dy, T divisor) const { return dy == T(0) ? T(0) : dy / divisor; } };
struct sqrt_grad { template <class T> WEFT_HD T operator()(T dy, T y) const { return dy == T(0) ? T(0) : T(0.5) * dy / y; } };
struct rsqrt_grad { template <class T> WEFT_HD T operator()(T dy, T y) const { return dy == T(0) ? T(0) : T(-0.5) * dy * y * y * y; } };
struct relu_grad { template <class T> WEFT_HD T operator()(T dy, T y) const { return y > T(0) ? dy : T(0); } };
struct sigmoid_grad { template <class T> WEFT_HD T operator()(T dy, T y) const { return dy * y * (T(1) - y); } };
struct tanh_grad { template <class T> WEFT_HD T operator()(T dy, T y) const { return dy * (T(1) - y * y); } };
struct gelu_grad {
  template <class T> WEFT_HD T operator()(T dy, T x) const {
    const T distribution = T(0.5) * (T(1) + math::erf(x * T(kSqrtHalf)));
    const T density = T(kInvSqrt2Pi) * math::exp(T(-0.5) * x * x);
    return dy * (distribution + x * density);
  }
};
struct gelu_tanh_grad {
  template <class T> WEFT_HD T operator()(T dy, T x) const {
    const T t = math::tanh(T(kSqrt2OverPi) * (x + T(0.044715) * x * x * x));
    const T inner = T(kSqrt2OverPi) * (T(1) + T(3 * 0.044715) * x * x);
    return dy * T(0.5) * (T(1) + t + x * (T(1) - t * t) * inner);
  }
};
struct silu_grad {
  template <class T> WEFT_HD T operator()(T dy, T x) const {
    const T s = math::sigmoid(x);
    return dy * s * (T(1) + x * (T(1) - s));
  }
};
struct leaky_relu_grad {
  double slope;
  template <class T> WEFT_HD T operator()(T dy, T x) const { return x <= T(0) ? dy * static_cast<T>(slope) : dy; }
};
struct clamp_grad {
  double low, high;
  template <class T> WEFT_HD T operator()(T dy, T x) const {
    return x <= static_cast<T>(low) || x >= static_cast<T>(high) ? T(0) : dy;
  }
};

struct select { template <class T> WEFT_HD T operator()(bool condition, T a, T b) const { return condition ? a : b; } };

struct eq { template <class T> WEFT_HD bool operator()(T a, T b) const { return a == b; } };
struct ne { template <class T> WEFT_HD bool operator()(T a, T b) const { return a != b; } };
struct lt { template <class T> WEFT_HD bool operator()(T a, T b) const { return a < b; } };
struct le { template <class T> WEFT_HD bool operator()(T a, T b) const { return a <= b; } };
struct gt { template <class T> WEFT_HD bool operator()(T a, T b) const { return a > b; } };
struct ge { template <class T> WEFT_HD bool operator()(T a, T b) const { return a >= b; } };

// clang-format on

/// x ↦ g(f(x…)): a chain of functions is one functor, and so one sweep over memory.
template <class F, class G>
struct Then {
  F f;
  G g;
  template <class... T>
  WEFT_HD auto operator()(T... x) const {
    return g(f(x...));
  }
};
template <class F, class G>
constexpr Then<F, G> then(F f, G g) {
  return {f, g};
}

}  // namespace weft::functors
