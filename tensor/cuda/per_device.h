// State that every device has one of.
#pragma once

#include <array>

#include "tensor/backend.h"
#include "tensor/cuda/check.h"

namespace weft::cuda {

inline int current_device() {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  return device;
}

/// By the device's index. Never destroyed: at the program's end the driver may be gone before it.
template <class State>
std::array<State, kMostDevices>& state_of_devices() {
  static auto* all = new std::array<State, kMostDevices>;
  return *all;
}

template <class State>
State& state_of_current_device() {
  return state_of_devices<State>().at(static_cast<size_t>(current_device()));
}

}  // namespace weft::cuda
