// The kernel table and its callers: `kernels::add(a, b, out)` runs the function that the operands' device has for
// `add`.
#pragma once

#include <cstddef>
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

extern const Table cpu_table;
/// The kernels of a device beside the CPU, which becomes the one that this thread works on; throws where there is none.
const Table& table_in_use(Device device);
[[noreturn]] void fail_devices(const char* kernel, Device a, Device b);

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

/// Throws where a tensor among the arguments is not on `device`.
template <class Argument>
void check_device(const char* kernel, Device device, const Argument& argument) {
  if constexpr (requires { argument.defined() ? argument.device() : Device{}; }) {
    if (argument.defined() && !(argument.device() == device)) [[unlikely]]
      fail_devices(kernel, device, argument.device());
  }
}

template <auto Member>
struct Caller;
template <class... Args, void (*Table::*Member)(Args...)>
struct Caller<Member> {
  const char* name;

  void operator()(Args... args) const {
    const Device device = device_of_call(args...);
    if (device == cpu) return (cpu_table.*Member)(args...);
    if constexpr (!std::is_same_v<Caller, Caller<&Table::copy>>) (check_device(name, device, args), ...);
    (table_in_use(device).*Member)(args...);
  }
};

}  // namespace detail

#define WEFT_KERNEL(name, ...) inline constexpr detail::Caller<&Table::name> name{#name};
#include "tensor/kernels.def"
#undef WEFT_KERNEL

}  // namespace weft::kernels

// Each device's functions. WEFT_GPU names the namespace of kernel sources: cuda_kernels, or simt_kernels where they are
// compiled for the tests' emulator.
namespace weft::cpu_kernels {
#define WEFT_KERNEL(name, ...) void name(__VA_ARGS__);
#include "tensor/kernels.def"
#undef WEFT_KERNEL
}  // namespace weft::cpu_kernels
#ifdef WEFT_GPU
namespace weft::WEFT_GPU {
#define WEFT_KERNEL(name, ...) void name(__VA_ARGS__);
#include "tensor/kernels.def"
#undef WEFT_KERNEL
}  // namespace weft::WEFT_GPU
#endif
