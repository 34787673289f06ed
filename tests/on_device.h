// Tests on a device beside the CPU: the emulated one, or what the environment names in WEFT_TEST_DEVICE. Skipped where
// it cannot be used.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tensor/backend.h"

namespace weft {

/// `Base` is testing::Test, or testing::TestWithParam of something.
template <class Base>
class OnDevice : public Base {
 protected:
  void SetUp() override {
    const char* wanted = std::getenv("WEFT_TEST_DEVICE");
    device = wanted ? device_from(wanted) : Device{DeviceType::simt, 0};
    const std::string why = device == cpu ? "wants a device beside the CPU" : why_unavailable(device);
    if (!why.empty()) GTEST_SKIP() << "skipped: " << why;
  }

  Device device;
};

}  // namespace weft
