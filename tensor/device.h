// Where a tensor lives.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

/// `simt` is the test-only device on which CUDA kernels run on the CPU.
enum class DeviceType : uint8_t { cpu, cuda, simt };

struct Device {
  DeviceType type = DeviceType::cpu;
  int16_t index = 0;
  bool operator==(const Device&) const = default;
};

inline constexpr Device cpu{};

/// "cpu", "cuda:1".
std::string name(Device device);
/// "cpu", "cuda", "cuda:1" → Device; throws for anything else.
Device device_from(std::string_view text);

}  // namespace weft
