// cuDNN's graph interface: descriptors that free themselves, and the search for an execution plan. Only for the files
// that are linked to cuDNN.
#pragma once

#include <cudnn.h>

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tensor/cuda/cudnn.h"

namespace weft::cudnn {

/// Throws "[cudnn] call: status: cuDNN's last words" unless the status is success.
void check(cudnnStatus_t status, std::string_view call);
/// The status with cuDNN's last message.
std::string str(cudnnStatus_t status);

namespace detail {

template <class T>
struct attribute_type;
#define WEFT_CUDNN_TYPE(type, name)                                         \
  template <>                                                               \
  struct attribute_type<type> {                                             \
    static constexpr cudnnBackendAttributeType_t value = CUDNN_TYPE_##name; \
  };
WEFT_CUDNN_TYPE(bool, BOOLEAN)
WEFT_CUDNN_TYPE(char, CHAR)
WEFT_CUDNN_TYPE(int32_t, INT32)
WEFT_CUDNN_TYPE(int64_t, INT64)
WEFT_CUDNN_TYPE(float, FLOAT)
WEFT_CUDNN_TYPE(double, DOUBLE)
WEFT_CUDNN_TYPE(void*, VOID_PTR)
WEFT_CUDNN_TYPE(cudnnHandle_t, HANDLE)
WEFT_CUDNN_TYPE(cudnnDataType_t, DATA_TYPE)
WEFT_CUDNN_TYPE(cudnnConvolutionMode_t, CONVOLUTION_MODE)
WEFT_CUDNN_TYPE(cudnnPointwiseMode_t, POINTWISE_MODE)
WEFT_CUDNN_TYPE(cudnnNanPropagation_t, NAN_PROPOGATION)
WEFT_CUDNN_TYPE(cudnnBackendHeurMode_t, HEUR_MODE)
WEFT_CUDNN_TYPE(cudnnBackendNumericalNote_t, NUMERICAL_NOTE)
WEFT_CUDNN_TYPE(cudnnBackendBehaviorNote_t, BEHAVIOR_NOTE)
#undef WEFT_CUDNN_TYPE

}  // namespace detail

/// What cuDNN does not do, as opposed to what went wrong.
class Refusal : public Error {
 public:
  using Error::Error;
};

/// One backend descriptor; `what` names it in errors.
class Descriptor {
 public:
  Descriptor(cudnnBackendDescriptorType_t type, std::string_view what);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)), what_(other.what_) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    return set_raw(name, detail::attribute_type<T>::value, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  Descriptor& set(cudnnBackendAttributeName_t name, const T& value) {
    return set(name, std::span<const T>(&value, 1));
  }
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);

  /// Throws Refusal where cuDNN finds it wrong or not supported.
  Descriptor& finalize();
  /// For descriptors that cuDNN may refuse for good reasons.
  cudnnStatus_t try_finalize() { return cudnnBackendFinalize(raw_); }

  template <class T>
  std::vector<T> get(cudnnBackendAttributeName_t name, int64_t most = -1) const {
    const auto type = detail::attribute_type<T>::value;
    std::vector<T> values(static_cast<size_t>(most < 0 ? count(name, type) : most));
    values.resize(static_cast<size_t>(get_raw(name, type, static_cast<int64_t>(values.size()), values.data())));
    return values;
  }
  /// Fills existing descriptors; returns how many.
  int64_t get(cudnnBackendAttributeName_t name, std::span<Descriptor> into) const;
  int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const;

  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  Descriptor& set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                      const void* values);
  int64_t get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most, void* values) const;

  cudnnBackendDescriptor_t raw_ = nullptr;
  std::string_view what_;  // a literal
};

/// What plans are made for: the device of a handle, or the device that a JSON text describes.
class Target {
 public:
  explicit Target(cudnnHandle_t handle) : handle_(handle) {}
  /// Throws where cuDNN refuses the text.
  explicit Target(std::string_view json);

  cudnnHandle_t handle() const { return handle_; }
  const Descriptor* device() const { return device_ ? &*device_ : nullptr; }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::unique_ptr<Descriptor> device_;
};

/// Numbers of the operands in a plan.
enum Uid : int64_t { kUidX = 1, kUidW = 2, kUidY = 3, kUidBias = 4 };

/// A plan that can be executed, with all that it refers to.
struct Plan {
  std::vector<Descriptor> parts;  ///< in the order they were made; the plan itself is last
  std::vector<int64_t> uids;      ///< of the operands it wants
  int64_t workspace = 0;          ///< bytes
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::vector<cudnnBackendBehaviorNote_t> behavior;
  bool fallback = false;  ///< not from the heuristics' own list
  int tried = 0;          ///< configurations looked at

  const Descriptor& descriptor() const { return parts.back(); }
  bool has(cudnnBackendNumericalNote_t note) const;
  /// "tensor_core nondeterministic".
  std::string note_names() const;

  ~Plan();
};

/// The addresses that an execution of the plan gets.
Descriptor variant_pack(const Plan& plan, const Addresses& at, void* workspace);

/// Notes that engines of a key must not carry.
std::vector<cudnnBackendNumericalNote_t> banned_notes(const ConvKey& key);

/// Plans that want more are passed over.
inline constexpr int64_t kMostWorkspace = int64_t{1} << 30;

/// The first plan that the heuristics, then the fallback list, propose and that finalises, carries no banned note and
/// keeps to the workspace; null where there is none, with the reason.
std::shared_ptr<const Plan> find_plan(const ConvKey& key, const Target& target, std::string& reason,
                                      int64_t most_workspace = kMostWorkspace);

/// Plans by key, and keys known to have none, of one device. Nothing is forgotten: work in a stream, and captured
/// steps, may use a plan's kernels long after its last call.
class PlanCache {
 public:
  /// The plan, made by `find_plan` the first time; null where there is none.
  std::shared_ptr<const Plan> find(const ConvKey& key, const Target& target);
  PlanStatistics statistics() const;

 private:
  struct Hash {
    size_t operator()(const ConvKey& key) const { return hash(key); }
  };

  mutable std::mutex mutex_;
  std::unordered_map<ConvKey, std::shared_ptr<const Plan>, Hash> plans_;
  PlanStatistics counts_;
};

/// The text of device properties.
std::string json_of(const Descriptor& device);

}  // namespace weft::cudnn
