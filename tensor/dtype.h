// Element types and how to get from a run-time DType to a C++ type.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <utility>

#include "tensor/error.h"
#include "tensor/half.h"

namespace weft {

enum class DType : uint8_t { f32, f64, bf16, f16, i32, i64, u8, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType f16 = DType::f16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType u8 = DType::u8;
inline constexpr DType boolean = DType::boolean;

/// Bytes of one element.
constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::u8:
    case DType::boolean:
      return 1;
  }
  return 0;
}

constexpr bool is_floating(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::bf16 || t == DType::f16;
}

std::string_view name(DType t);
/// Throws "[op] wants <wanted>, got <dtype>".
[[noreturn]] void fail_dtype(std::string_view op, std::string_view wanted, DType got);
/// "f32" → DType::f32; throws for an unknown name.
DType dtype_from(std::string_view name);

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct dtype_of<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct dtype_of<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct dtype_of<Float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct dtype_of<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct dtype_of<int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct dtype_of<bool> {
  static constexpr DType value = DType::boolean;
};

template <class T>
concept FloatingElement =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, BFloat16> || std::same_as<T, Float16>;

/// The type that arithmetic on T happens in: float for the 16-bit types, T itself otherwise.
template <class T>
struct compute {
  using type = T;
};
template <>
struct compute<BFloat16> {
  using type = float;
};
template <>
struct compute<Float16> {
  using type = float;
};
template <class T>
using compute_t = typename compute<T>::type;

/// Calls `f.template operator()<T>()` with the element type of `t`: `dispatch(x.dtype(), [&]<class T>() { … })`.
template <class F>
decltype(auto) dispatch(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<BFloat16>();
    case DType::f16:
      return f.template operator()<Float16>();
    case DType::i32:
      return f.template operator()<int32_t>();
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::u8:
      return f.template operator()<uint8_t>();
    case DType::boolean:
      break;
  }
  return f.template operator()<bool>();
}

/// The same for floating types only; `op` names the caller in the error.
template <class F>
decltype(auto) dispatch_floating(std::string_view op, DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<BFloat16>();
    case DType::f16:
      return f.template operator()<Float16>();
    default:
      fail_dtype(op, "a floating dtype", t);
  }
}

/// The same for i32 and i64, the types of indices and labels.
template <class F>
decltype(auto) dispatch_index(std::string_view op, DType t, F&& f) {
  switch (t) {
    case DType::i32:
      return f.template operator()<int32_t>();
    case DType::i64:
      return f.template operator()<int64_t>();
    default:
      fail_dtype(op, "indices of dtype i32 or i64", t);
  }
}

/// A number that keeps what it was: 64-bit integers do not pass through double.
struct Scalar {
  double d;
  int64_t i;
  bool integral;

  template <std::integral I>
  Scalar(I x) : d(static_cast<double>(x)), i(static_cast<int64_t>(x)), integral(true) {}
  template <std::floating_point F>
  Scalar(F x) : d(x), i(0), integral(false) {}

  template <class T>
  T to() const {
    if constexpr (std::same_as<T, bool>)
      return integral ? i != 0 : d != 0;
    else if constexpr (std::integral<T>)
      return integral ? static_cast<T>(i) : static_cast<T>(d);
    else if constexpr (std::same_as<T, double>)
      return d;
    else
      return static_cast<T>(static_cast<float>(d));
  }
};

}  // namespace weft
