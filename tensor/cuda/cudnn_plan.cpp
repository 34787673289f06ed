// The cache of plans, and running one. A device has one handle and one cache, and runs are queued under its lock:
// cuDNN does not promise that a plan may be executed by two threads at once.
#include <algorithm>

#include "tensor/cuda/cudnn_graph.h"
#include "tensor/cuda/per_device.h"

namespace weft::cudnn {
namespace {

struct DeviceState {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
  PlanCache plans;
};

/// The current device's handle and plans, locked.
class Lease {
 public:
  Lease() : state_(cuda::state_of_current_device<DeviceState>()), lock_(state_.mutex) {
    if (!state_.handle) check(cudnnCreate(&state_.handle), "cudnnCreate");
  }
  cudnnHandle_t handle() const { return state_.handle; }
  std::shared_ptr<const Plan> plan(const ConvKey& key) { return state_.plans.find(key, Target(state_.handle)); }

 private:
  DeviceState& state_;
  std::lock_guard<std::mutex> lock_;
};

/// The largest power of two up to `most` that all addresses divide by.
int64_t common_alignment(const Addresses& at, int64_t most) {
  const auto bits = reinterpret_cast<uintptr_t>(at.x) | reinterpret_cast<uintptr_t>(at.w) |
                    reinterpret_cast<uintptr_t>(at.y) | reinterpret_cast<uintptr_t>(at.bias);
  while (most > 1 && bits % static_cast<uintptr_t>(most) != 0) most /= 2;
  return most;
}

void* address_of(int64_t uid, const Addresses& at) {
  const void* address = uid == kUidX ? at.x : uid == kUidW ? at.w : uid == kUidY ? at.y : at.bias;
  return const_cast<void*>(address);
}

bool has_elements(const ConvKey& key) {
  auto all = [](const Operand& o) {
    return std::all_of(o.sizes.begin(), o.sizes.end(), [](int64_t n) { return n > 0; });
  };
  return all(key.x) && all(key.w) && all(key.y);
}

}  // namespace

Descriptor variant_pack(const Plan& plan, const Addresses& at, void* workspace) {
  std::vector<void*> addresses;
  for (const int64_t uid : plan.uids) addresses.push_back(address_of(uid, at));
  Descriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(plan.uids));
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(addresses));
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace);
  pack.finalize();
  return pack;
}

std::shared_ptr<const Plan> PlanCache::find(const ConvKey& key, const Target& target) {
  std::lock_guard lock(mutex_);
  if (const auto known = plans_.find(key); known != plans_.end()) {
    ++counts_.hits;
    return known->second;
  }
  ++counts_.misses;
  std::string reason;
  std::shared_ptr<const Plan> plan = find_plan(key, target, reason);
  plans_.emplace(key, plan);
  if (plan)
    ++counts_.plans;
  else
    ++counts_.none, counts_.reason = std::move(reason);
  return plan;
}

PlanStatistics PlanCache::statistics() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

bool has_plan(const ConvKey& key) { return has_elements(key) && Lease().plan(key) != nullptr; }

bool convolution(const ConvKey& key, const Addresses& at, const Workspace& workspace, CUstream_st* stream) {
  if (!has_elements(key)) return false;
  ConvKey aligned = key;
  aligned.alignment = common_alignment(at, key.alignment);
  Lease device;
  const std::shared_ptr<const Plan> plan = device.plan(aligned);
  if (!plan) return false;
  const Descriptor pack = variant_pack(*plan, at, plan->workspace > 0 ? workspace(plan->workspace) : nullptr);
  check(cudnnSetStream(device.handle(), stream), "cudnnSetStream");
  check(cudnnBackendExecute(device.handle(), plan->descriptor().raw(), pack.raw()), "cudnnBackendExecute");
  return true;
}

PlanStatistics plan_statistics() {
  PlanStatistics sum;
  for (const DeviceState& state : cuda::state_of_devices<DeviceState>()) {
    PlanStatistics one = state.plans.statistics();
    sum.hits += one.hits, sum.misses += one.misses, sum.plans += one.plans, sum.none += one.none;
    if (!one.reason.empty()) sum.reason = std::move(one.reason);
  }
  return sum;
}

std::string device_description() {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties");
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, static_cast<int32_t>(cuda::current_device())).finalize();
  return json_of(properties);
}

}  // namespace weft::cudnn
