// The kernel table and its callers: `kernels::add(a, b, out)` runs the function that a's device has for `add`.
#pragma once

#include <span>

#include "tensor/kernel_args.h"
#include "tensor/random.h"
#include "tensor/tensor.h"

namespace weft::kernels {

/// One function pointer a kernel. A device fills it by naming every kernel, so a forgotten one does not link.
struct Table {
#define WEFT_KERNEL(name, ...) void (*name)(__VA_ARGS__);
#include "tensor/kernels.def"
#undef WEFT_KERNEL
};

/// The kernels of a device; throws where it has none.
const Table& table(DeviceType type);

namespace detail {

inline Device device_of(const Tensor& x) { return x.device(); }
template <class First, class... Rest>
Device device_of_arguments(const First& first, const Rest&... rest) {
  if constexpr (std::is_convertible_v<const First&, const Tensor&>)
    return first.device();
  else if constexpr (requires { first.front().device(); })
    return first.empty() ? Device{} : first.front().device();
  else
    return device_of_arguments(rest...);
}

template <auto Member>
struct Caller;
template <class... Args, void (*Table::*Member)(Args...)>
struct Caller<Member> {
  void operator()(Args... args) const { (table(device_of_arguments(args...).type).*Member)(args...); }
};

}  // namespace detail

#define WEFT_KERNEL(name, ...) inline constexpr detail::Caller<&Table::name> name{};
#include "tensor/kernels.def"
#undef WEFT_KERNEL

}  // namespace weft::kernels

namespace weft::cpu_kernels {
#define WEFT_KERNEL(name, ...) void name(__VA_ARGS__);
#include "tensor/kernels.def"
#undef WEFT_KERNEL
}  // namespace weft::cpu_kernels
