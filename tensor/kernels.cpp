// Which device has which table.
#include "tensor/kernels.h"

#include "tensor/backend.h"

namespace weft::kernels {

const Table cpu_table = {
#define WEFT_KERNEL(name, ...) .name = &cpu_kernels::name,
#include "tensor/kernels.def"
#undef WEFT_KERNEL
};

const Table& table_in_use(Device device) { return backend_in_use(device).kernels; }

void fail_devices(const char* kernel, Device a, Device b) {
  fail(kernel, fmt::format("operands are on {} and {}; move one with to(device)", name(a), name(b)));
}

}  // namespace weft::kernels
