// Convolutions through cuDNN, for the conv kernels of the plug-in. Plans are found once a key and kept; "no plan" is an
// answer, not an error. Free of cuDNN's own headers: where cuDNN is not linked, the answer is always no.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

struct CUstream_st;

namespace weft::cudnn {

enum class Direction : uint8_t { forward, backward_data, backward_weight };

/// What a forward plan applies to its result.
enum class Epilogue : uint8_t { none, relu, bias, bias_relu };

/// Four sizes or strides: N, C, H, W of images; O, C / groups, kh, kw of weights.
using Dims = std::array<int64_t, 4>;

struct Operand {
  Dims sizes{}, strides{};
  bool operator==(const Operand&) const = default;
};

/// All that a plan depends on. x, w and y have the names of the forward direction: backward_data writes x (reads w, y),
/// backward_weight writes w (reads x, y).
struct ConvKey {
  Direction direction = Direction::forward;
  DType dtype = f32;  ///< of all operands; sums are in f32, f64 in f64
  Operand x, w, y;
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  Epilogue epilogue = Epilogue::none;  ///< forward only
  int64_t alignment = 16;              ///< of all addresses, in bytes
  bool tf32 = false;                   ///< f32 may lose mantissa bits in tensor cores
  bool deterministic = true;           ///< only engines that give the same bits in every run

  bool operator==(const ConvKey&) const = default;
};
size_t hash(const ConvKey& key);

/// The key of three tensors. Strides of dimensions of size 1 say nothing, so they are set to what the channels-last
/// layout has, or the row-major one where x is row-major: equal layouts have equal keys.
ConvKey describe(Direction direction, const Tensor& x, const Tensor& w, const Tensor& y,
                 const ConvParameters& parameters);

/// Where the operands are; the one that the direction writes is written.
struct Addresses {
  const void* x;
  const void* w;
  const void* y;
  const void* bias = nullptr;  ///< [O] of the key's dtype, where the epilogue has a bias
};

/// Device memory of at least this many bytes that stays until the stream has passed the call.
using Workspace = std::function<void*(int64_t bytes)>;

/// Whether a plan for the current device is there or can be made.
bool has_plan(const ConvKey& key);

/// Launches the convolution on the current device's `stream`. False, with nothing done, where there is no plan: for an
/// epilogue, then run Epilogue::none and apply bias and activation afterwards. Throws weft::Error where cuDNN fails
/// otherwise.
bool convolution(const ConvKey& key, const Addresses& at, const Workspace& workspace, CUstream_st* stream);

/// The caches of all devices.
struct PlanStatistics {
  int64_t hits = 0;    ///< questions answered from the cache
  int64_t misses = 0;  ///< questions that cuDNN was asked
  int64_t plans = 0;   ///< in the cache now
  int64_t none = 0;    ///< in the cache now: keys without a plan
  std::string reason;  ///< why the last of these has none
};
PlanStatistics plan_statistics();

/// The current device as cuDNN writes it down (JSON); plans can be made from such a text without the device.
std::string device_description();

}  // namespace weft::cudnn
