// The 16-bit floating types as storage: bfloat16 and IEEE half. Arithmetic happens in float; conversion rounds to
// nearest, ties to even, and keeps NaN a NaN.
#pragma once

#include <bit>
#include <cstdint>

#include "tensor/host_device.h"

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace weft {

struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  WEFT_HD BFloat16(float x) {
#ifdef __CUDA_ARCH__
    bits = __bfloat16_as_ushort(__float2bfloat16(x));
#else
    const uint32_t u = std::bit_cast<uint32_t>(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);  // quiet NaN
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
#endif
  }
  WEFT_HD operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  WEFT_HD Float16(float x) : bits(from_float(x)) {}
  WEFT_HD operator float() const { return to_float(bits); }

 private:
#ifdef __CUDA_ARCH__
  WEFT_HD static uint16_t from_float(float x) { return __half_as_ushort(__float2half_rn(x)); }
  WEFT_HD static float to_float(uint16_t h) { return __half2float(__ushort_as_half(h)); }
#elif defined(__F16C__) && !defined(__CUDACC__)
  static uint16_t from_float(float x) {
    return static_cast<uint16_t>(_mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(x), _MM_FROUND_TO_NEAREST_INT), 0));
  }
  static float to_float(uint16_t h) { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h))); }
#else
  WEFT_HD static uint16_t from_float(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    const uint32_t sign = (u >> 16) & 0x8000u;
    const uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65536 and more
    if (magnitude < 0x38800000u) {                                               // subnormal half: let float add round
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u;
    return static_cast<uint16_t>(sign | (rounded >> 13));
  }
  WEFT_HD static float to_float(uint16_t h) {
    const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
    const uint32_t magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(subnormal));
  }
#endif
};

}  // namespace weft
