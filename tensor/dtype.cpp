// Names of element types.
#include "tensor/dtype.h"

#include <array>

namespace weft {

namespace {
constexpr std::array<std::string_view, 8> kNames{"f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"};
}

std::string_view name(DType t) { return kNames.at(static_cast<size_t>(t)); }

void fail_dtype(std::string_view op, std::string_view wanted, DType got) {
  fail(op, fmt::format("wants {}, got {}", wanted, name(got)));
}

DType dtype_from(std::string_view text) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == text) return static_cast<DType>(i);
  fail("dtype", fmt::format("no dtype is called '{}'; they are f32 f64 bf16 f16 i32 i64 u8 bool", text));
}

}  // namespace weft
