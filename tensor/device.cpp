// Names of devices.
#include "tensor/device.h"

#include <charconv>

#include "tensor/error.h"

namespace weft {

std::string name(Device device) {
  switch (device.type) {
    case DeviceType::cpu:
      return "cpu";
    case DeviceType::cuda:
      return fmt::format("cuda:{}", device.index);
    case DeviceType::simt:
      return "simt";
  }
  return "?";
}

Device device_from(std::string_view text) {
  if (text == "cpu") return cpu;
  if (text == "simt") return {DeviceType::simt, 0};
  if (text == "cuda") return {DeviceType::cuda, 0};
  if (text.starts_with("cuda:")) {
    const std::string_view digits = text.substr(5);
    int16_t index = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error == std::errc{} && end == digits.data() + digits.size() && index >= 0) return {DeviceType::cuda, index};
  }
  fail("device", fmt::format("no device is called '{}'; expected cpu, cuda or cuda:N", text));
}

}  // namespace weft
