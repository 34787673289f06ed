// Which device a run takes, and what it says about it.
#include "train/device.h"

#include "tensor/backend.h"
#include "tensor/error.h"
#include "tensor/threads.h"

namespace weft::train {

Device device_for(const std::string& text) {
  if (text == "auto") {
    const Device gpu{DeviceType::cuda, 0};
    return why_unavailable(gpu).empty() ? gpu : cpu;
  }
  const Device device = device_from(text);
  const std::string reason = why_unavailable(device);
  WEFT_CHECK(reason.empty(), "--device", "{}", reason);
  return device;
}

DType amp_dtype(const std::string& text) {
  if (text.empty()) return f32;
  WEFT_CHECK(text == "bf16" || text == "fp16", "--amp", "wants bf16 or fp16, got '{}'", text);
  return text == "bf16" ? bf16 : f16;
}

std::string describe(Device device) {
  if (device == cpu) return fmt::format("cpu, {} thread{}", num_threads(), num_threads() == 1 ? "" : "s");
  return fmt::format("{}, {}", name(device), backend(device.type).device_name(device.index));
}

}  // namespace weft::train
