// Transcendental functions without branches or calls, so that loops over them become vector code. Float versions stay
// within 4 ulp of the exact value (tests/tensor/math_test.cpp); double goes to the C library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::math {

inline double exp(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double erf(double x) { return std::erf(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
inline double log1p_unit(double x) { return std::log1p(x); }

/// e^x: 2^n times a polynomial on [-ln2/2, ln2/2]; exact 0 and infinity at the ends, NaN stays NaN.
inline __attribute__((always_inline)) float exp(float x) {
  const float clamped = x > 88.8f ? 88.8f : x < -104.0f ? -104.0f : x;
  const float n = std::nearbyint(clamped * 1.44269504088896341f);
  float r = clamped - n * 0.693359375f;  // ln 2 in two parts, the first exact in 9 bits
  r = r - n * -2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // 2^n in two steps, since n may leave the exponent's range by itself.
  const auto i = static_cast<int32_t>(n == n ? n : 0.0f);
  const int32_t half = i >> 1;
  const float a = std::bit_cast<float>((half + 127) << 23), b = std::bit_cast<float>((i - half + 127) << 23);
  const float y = p * a * b;
  return x != x ? x : y;
}

/// Up to here sin and cos of a float hold; beyond, the C library reduces better.
inline constexpr float kSinLimit = 1e5f;

/// sin(x + quarters · π/2): Taylor series on [-π/4, π/4]; π/2 comes off in double, in two parts, the first exact in 33
/// bits.
inline __attribute__((always_inline)) float sin_from(float x, int32_t quarters) {
  const double wide = static_cast<double>(x), n = std::nearbyint(wide * 0.63661977236758134308);
  const auto r = static_cast<float>((wide - n * 1.57079632673412561417) - n * 6.07710050650619224932e-11);
  const int32_t quadrant = static_cast<int32_t>(n == n ? n : 0.0) + quarters;
  const float z = r * r;
  const float odd = r + r * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 + z * (1.0f / 362880))));
  const float even =
      1.0f + z * (-0.5f + z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320 + z * (-1.0f / 3628800)))));
  const float y = (quadrant & 1) != 0 ? even : odd;
  return (quadrant & 2) != 0 ? -y : y;
}
inline __attribute__((always_inline)) float sin(float x) { return sin_from(x, 0); }
inline __attribute__((always_inline)) float cos(float x) { return sin_from(x, 1); }

/// ln x: the exponent plus 2·atanh((m - 1) / (m + 1)) for m in [√½, √2).
inline __attribute__((always_inline)) float log(float x) {
  const bool subnormal = x < std::numeric_limits<float>::min();
  const float scaled = subnormal ? x * 0x1p23f : x;
  const int32_t bits = std::bit_cast<int32_t>(scaled);
  const int32_t e = (bits - 0x3f3504f3) >> 23;
  const float m = std::bit_cast<float>(bits - (e << 23));
  const float n = static_cast<float>(e - (subnormal ? 23 : 0));
  const float f = m - 1.0f;
  const float s = f / (2.0f + f), z = s * s;
  const float poly = z * (0.66666662693f + z * (0.40000972152f + z * (0.28498786688f + z * 0.24279078841f)));
  const float half = 0.5f * f * f;
  float y = f - (half - (s * (half + poly) + n * 9.0580006145e-6f)) + n * 0.69313812256f;
  y = x == std::numeric_limits<float>::infinity() ? x : y;
  y = x == 0.0f ? -std::numeric_limits<float>::infinity() : y;
  return x < 0.0f || x != x ? std::numeric_limits<float>::quiet_NaN() : y;
}

/// ln(1 + x) for x in [0, 1].
inline __attribute__((always_inline)) float log1p_unit(float x) {
  const float u = 1.0f + x;
  // log(u) corrected for what the rounding of u lost; for tiny x this is x itself.
  return u == 1.0f ? x : log(u) * (x / (u - 1.0f));
}

inline __attribute__((always_inline)) float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }

/// tanh: a rational function near 0 (its continued fraction), 1 - 2 / (e^2x + 1) beyond.
inline __attribute__((always_inline)) float tanh(float x) {
  const float magnitude = std::fabs(x), z = x * x;
  const float small =
      x * (135135.0f + z * (17325.0f + z * (378.0f + z))) / (135135.0f + z * (62370.0f + z * (3150.0f + z * 28.0f)));
  const float large = std::copysign(1.0f - 2.0f / (exp(2.0f * magnitude) + 1.0f), x);
  return magnitude < 0.625f ? small : x != x ? x : large;
}

/// erf: a Taylor series near 0; beyond, 1 - e^-x² times a polynomial in 1 / (1 + x/2) (Numerical Recipes' erfc, whose
/// relative error is below 1.2e-7).
inline __attribute__((always_inline)) float erf(float x) {
  const float magnitude = std::fabs(x), z = x * x;
  float series = 1.0f / 6894720;  // Σ (-z)^n / (n! (2n + 1)), n up to 9
  series = 1.0f / 685440 - z * series;
  series = 1.0f / 75600 - z * series;
  series = 1.0f / 9360 - z * series;
  series = 1.0f / 1320 - z * series;
  series = 1.0f / 216 - z * series;
  series = 1.0f / 42 - z * series;
  series = 1.0f / 10 - z * series;
  series = 1.0f / 3 - z * series;
  const float small = x * 1.12837916710f * (1.0f - z * series);
  const float t = 1.0f / (1.0f + 0.5f * magnitude);
  const float poly =
      -1.26551223f +
      t * (1.00002368f +
           t * (0.37409196f +
                t * (0.09678418f +
                     t * (-0.18628806f +
                          t * (0.27886807f +
                               t * (-1.13520398f + t * (1.48851587f + t * (-0.82215223f + t * 0.17087277f))))))));
  const float complement = t * exp(-z + poly);
  const float large = std::copysign(1.0f - complement, x);
  return magnitude < 1.0f ? small : x != x ? x : large;
}

}  // namespace weft::math
