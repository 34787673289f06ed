// The kernel table and its callers: `kernels::add(a, b, out)` runs the function that the operands' device has for
// `add`.
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

/// The device of one argument: the CPU for numbers, undefined tensors and empty lists.
template <class Argument>
Device device_of(const Argument& argument) {
  if constexpr (requires { argument.defined() ? argument.device() : Device{}; })
    return argument.defined() ? argument.device() : Device{};
  else if constexpr (requires { argument.front().device(); })
    return argument.empty() ? Device{} : argument.front().device();
  else
    return {};
}

/// The device whose kernel runs: the first that is not the CPU, so that a copy between both is the device's.
template <class... Arguments>
Device device_of_call(const Arguments&... arguments) {
  Device device;
  (void)((device = device_of(arguments), !(device == cpu)) || ...);
  return device;
}

template <auto Member>
struct Caller;
template <class... Args, void (*Table::*Member)(Args...)>
struct Caller<Member> {
  void operator()(Args... args) const { (table(device_of_call(args...).type).*Member)(args...); }
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
