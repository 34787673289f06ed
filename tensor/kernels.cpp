// Which device has which table.
#include "tensor/kernels.h"

namespace weft::kernels {
namespace {

constexpr Table kCpu = {
#define WEFT_KERNEL(name, ...) .name = &cpu_kernels::name,
#include "tensor/kernels.def"
#undef WEFT_KERNEL
};

}  // namespace

const Table& table(DeviceType type) {
  WEFT_CHECK(type == DeviceType::cpu, "device", "this build has no kernels for {}", name(Device{type, 0}));
  return kCpu;
}

}  // namespace weft::kernels
