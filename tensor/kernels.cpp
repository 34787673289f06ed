// Which device has which table.
#include "tensor/kernels.h"

#include "tensor/backend.h"
#include "tensor/stream.h"

namespace weft::kernels {
namespace {

constexpr Table kCpu = {
#define WEFT_KERNEL(name, ...) .name = &cpu_kernels::name,
#include "tensor/kernels.def"
#undef WEFT_KERNEL
};

}  // namespace

const Table& table(DeviceType type) { return type == DeviceType::cpu ? kCpu : backend(type).kernels; }

const Table& table_in_use(Device device) { return backend_in_use(device).kernels; }

void fail_devices(const char* kernel, Device a, Device b) {
  fail(kernel, fmt::format("operands are on {} and {}; move one with to(device)", name(a), name(b)));
}

}  // namespace weft::kernels
