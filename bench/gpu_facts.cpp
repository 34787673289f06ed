// What a GPU and cuDNN say about themselves, for scripts/gpu-check.sh: one JSON object on standard output, and cuDNN's
// description of the device, from which plans can be made elsewhere, as a file.
//   gpu_facts DEVICE [FILE]     DEVICE is cuda, or simt, of which cuDNN knows nothing
#include <cudnn_version.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tensor/atomic_file.h"
#include "tensor/backend.h"
#include "tensor/cuda/check.h"
#include "tensor/cuda/cudnn.h"
#include "tests/cuda/convolutions.h"

namespace {

using namespace weft;
using nlohmann::ordered_json;

std::vector<testing::Convolution> convolutions() {
  std::vector<testing::Convolution> all = testing::case_convolutions();
  for (const auto& more : {testing::test_convolutions(), testing::model_convolutions()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// Asks for the plans of all convolutions of the tests in three directions.
ordered_json plans() {
  using enum cudnn::Direction;
  ordered_json without = ordered_json::array();
  int asked = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const testing::Convolution& c : convolutions()) {
    const Tensor x = empty_channels_last(c.x), w = empty(c.w), y = empty_channels_last(c.y());
    for (const auto direction : {forward, backward_data, backward_weight}) {
      ++asked;
      if (!cudnn::has_plan(cudnn::describe(direction, x, w, y, c.parameters))) without.push_back(c.name);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const cudnn::PlanStatistics s = cudnn::plan_statistics();
  return {{"asked", asked},    {"seconds", seconds.count()}, {"without", without},
          {"plans", s.plans},  {"misses", s.misses},         {"none", s.none},
          {"reason", s.reason}};
}

ordered_json facts(Device device, const char* description_file) {
  const Backend& runtime = backend(device.type);
  runtime.set_device(device.index);
  int64_t free = 0, total = 0;
  runtime.memory(free, total);
  ordered_json result = {{"device", runtime.device_name(device.index)},
                         {"memory_bytes", total},
                         {"free_bytes", free},
                         {"cudart_built_with", CUDART_VERSION},
                         {"cudnn_built_with", CUDNN_VERSION}};
  if (device.type != DeviceType::cuda) return result;
  cudaDeviceProp p{};
  CUDA_CHECK(cudaSetDevice(device.index));
  CUDA_CHECK(cudaGetDeviceProperties(&p, device.index));
  int driver = 0;
  CUDA_CHECK(cudaDriverGetVersion(&driver));
  result["driver"] = driver;
  result["compute_capability"] = fmt::format("{}.{}", p.major, p.minor);
  result["multiprocessors"] = p.multiProcessorCount;
  result["l2_bytes"] = p.l2CacheSize;
  result["plans"] = plans();
  if (description_file) {
    AtomicFile file(description_file);
    file.write(cudnn::device_description() + "\n");
    file.commit();
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "gpu_facts: wants a device and, if a description is to be written, a file\n");
    return 2;
  }
  try {
    fmt::print("{}\n", facts(device_from(argv[1]), argc > 2 ? argv[2] : nullptr).dump(2));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
