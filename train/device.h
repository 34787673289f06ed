// The device and the precision of a run, from words of the command line.
#pragma once

#include <string>

#include "tensor/device.h"
#include "tensor/dtype.h"

namespace weft::train {

/// "auto" is the first CUDA device where this machine has one, else the CPU; other words are names of devices. Throws
/// the reason where a named device cannot be used.
Device device_for(const std::string& text);

/// What `--amp` stands for: bf16, fp16, or nothing for f32, which is no mixed precision. Throws for other words.
DType amp_dtype(const std::string& text);

/// What a run prints about its device: "cpu, 2 threads", "cuda:0, NVIDIA H200".
std::string describe(Device device);

}  // namespace weft::train
