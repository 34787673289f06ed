// Descriptors, the graph of a convolution, and the search for a plan.
#include "tensor/cuda/cudnn_graph.h"

#include <algorithm>
#include <array>

namespace weft::cudnn {
namespace {

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::f64:
      return CUDNN_DATA_DOUBLE;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      fail("cudnn", fmt::format("has no convolution of {}", name(dtype)));
  }
}

cudnnDataType_t compute_type_of(DType dtype) { return dtype == f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT; }

std::array<int64_t, 2> both(Pair pair) { return {pair.h, pair.w}; }

Descriptor tensor(const char* what, int64_t uid, const Operand& operand, cudnnDataType_t type, int64_t alignment,
                  bool is_virtual = false) {
  Descriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  d.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(operand.sizes));
  d.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(operand.strides));
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid);
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  if (is_virtual) d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  d.finalize();
  return d;
}

Descriptor window(const ConvKey& key) {
  Descriptor d(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution");
  d.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute_type_of(key.dtype));
  d.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  d.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  d.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span<const int64_t>(both(key.padding)));
  d.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span<const int64_t>(both(key.padding)));
  d.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span<const int64_t>(both(key.stride)));
  d.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span<const int64_t>(both(key.dilation)));
  d.finalize();
  return d;
}

/// The names that one direction's operation gives its attributes.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window, x, w, y, alpha, beta;
};

OperationNames names_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_weight:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

/// The operations of a key in `parts`, and last the graph of them.
class GraphBuilder {
 public:
  explicit GraphBuilder(const ConvKey& key) : key_(key), type_(type_of(key.dtype)) {}

  void build(const Target& target) {
    const bool fused = key_.epilogue != Epilogue::none;
    const size_t x = add(tensor("x", kUidX, key_.x, type_, key_.alignment));
    const size_t w = add(tensor("w", kUidW, key_.w, type_, key_.alignment));
    size_t y = fused ? intermediate() : output();
    const size_t conv = add(window(key_));
    convolve(x, w, y, conv);
    uids = {kUidX, kUidW, kUidY};
    if (key_.epilogue == Epilogue::bias || key_.epilogue == Epilogue::bias_relu) {
      const size_t bias = add(tensor("bias", kUidBias, bias_operand(), type_, key_.alignment));
      const size_t sum = key_.epilogue == Epilogue::bias ? output() : intermediate();
      pointwise(CUDNN_POINTWISE_ADD, y, bias, sum);
      uids.push_back(kUidBias);
      y = sum;
    }
    if (key_.epilogue == Epilogue::relu || key_.epilogue == Epilogue::bias_relu)
      pointwise(CUDNN_POINTWISE_RELU_FWD, y, kNone, output());

    Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations_));
    if (target.handle()) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle());
    graph.finalize();
    for (Descriptor& operation : operations_) parts.push_back(std::move(operation));
    parts.push_back(std::move(graph));
  }

  std::vector<Descriptor> parts;
  std::vector<int64_t> uids;

 private:
  static constexpr size_t kNone = ~size_t{0};

  size_t add(Descriptor&& d) {
    parts.push_back(std::move(d));
    return parts.size() - 1;
  }
  size_t output() { return add(tensor("y", kUidY, key_.y, type_, key_.alignment)); }
  /// y before the next operation, which never reaches memory.
  size_t intermediate() { return add(tensor("intermediate", next_++, key_.y, compute_type_of(key_.dtype), 16, true)); }
  Operand bias_operand() const {
    const int64_t o = key_.w.sizes[0];
    return {{1, o, 1, 1}, {o, 1, o, o}};
  }

  void convolve(size_t x, size_t w, size_t y, size_t conv) {
    const OperationNames names = names_of(key_.direction);
    Descriptor d(names.type, "convolution operation");
    d.set(names.window, parts[conv]).set(names.x, parts[x]).set(names.w, parts[w]).set(names.y, parts[y]);
    if (key_.dtype == f64)
      d.set(names.alpha, 1.0).set(names.beta, 0.0);
    else
      d.set(names.alpha, 1.0f).set(names.beta, 0.0f);
    d.finalize();
    operations_.push_back(std::move(d));
  }

  void pointwise(cudnnPointwiseMode_t mode, size_t x, size_t b, size_t y) {
    Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise");
    function.set(CUDNN_ATTR_POINTWISE_MODE, mode);
    function.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute_type_of(key_.dtype));
    if (mode == CUDNN_POINTWISE_RELU_FWD) function.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
    const size_t kept = add(std::move(function.finalize()));
    Descriptor d(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation");
    d.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts[kept]);
    d.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, parts[x]);
    if (b != kNone) d.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, parts[b]);
    d.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, parts[y]);
    d.finalize();
    operations_.push_back(std::move(d));
  }

  const ConvKey& key_;
  const cudnnDataType_t type_;
  std::vector<Descriptor> operations_;
  int64_t next_ = 100;
};

/// What heuristics propose for a graph, best first.
std::vector<Descriptor> configurations(const Descriptor& graph, cudnnBackendHeurMode_t mode, const Target& target,
                                       std::string& reason) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
  if (target.device()) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device());
  if (const cudnnStatus_t status = heuristics.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    reason = str(status);
    return {};
  }
  std::vector<Descriptor> found;
  for (int64_t n = heuristics.count(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR); n > 0; --n)
    found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration");
  const int64_t filled = heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, std::span<Descriptor>(found));
  while (static_cast<int64_t>(found.size()) > filled) found.pop_back();
  return found;
}

}  // namespace

std::string str(cudnnStatus_t status) {
  std::array<char, 512> words{};
  cudnnGetLastErrorString(words.data(), words.size());
  return words[0] ? fmt::format("{}: {}", cudnnGetErrorString(status), words.data()) : cudnnGetErrorString(status);
}

void check(cudnnStatus_t status, std::string_view call) {
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    fail("cudnn", fmt::format("{}: {}", call, str(status)));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type, std::string_view what) : what_(what) {
  check(cudnnBackendCreateDescriptor(type, &raw_), fmt::format("cudnnBackendCreateDescriptor({})", what));
}

Descriptor::~Descriptor() {
  if (raw_) cudnnBackendDestroyDescriptor(raw_);
}

Descriptor& Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                                const void* values) {
  if (const cudnnStatus_t status = cudnnBackendSetAttribute(raw_, name, type, count, values);
      status != CUDNN_STATUS_SUCCESS)
    check(status, fmt::format("cudnnBackendSetAttribute({}, {})", what_, static_cast<int>(name)));
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  return set(name, std::span<const Descriptor>(&value, 1));
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) raw.push_back(value.raw());
  return set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

Descriptor& Descriptor::finalize() {
  const cudnnStatus_t status = try_finalize();
  const int category = CUDNN_STATUS_CATEGORY(static_cast<int>(status));
  if (category == CUDNN_STATUS_BAD_PARAM || category == CUDNN_STATUS_NOT_SUPPORTED)
    throw Refusal(fmt::format("[cudnn] cudnnBackendFinalize({}): {}", what_, str(status)));
  if (status != CUDNN_STATUS_SUCCESS) check(status, fmt::format("cudnnBackendFinalize({})", what_));
  return *this;
}

int64_t Descriptor::get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
                            void* values) const {
  int64_t count = 0;
  if (const cudnnStatus_t status = cudnnBackendGetAttribute(raw_, name, type, most, &count, values);
      status != CUDNN_STATUS_SUCCESS)
    check(status, fmt::format("cudnnBackendGetAttribute({}, {})", what_, static_cast<int>(name)));
  return most > 0 ? std::min(count, most) : count;
}

int64_t Descriptor::count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
  return get_raw(name, type, 0, nullptr);
}

int64_t Descriptor::get(cudnnBackendAttributeName_t name, std::span<Descriptor> into) const {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& d : into) raw.push_back(d.raw());
  return get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

Target::Target(std::string_view json)
    : device_(std::make_unique<Descriptor>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties")) {
  device_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(json));
  device_->finalize();
}

std::string json_of(const Descriptor& device) {
  const auto text = device.get<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
  return {text.begin(), std::find(text.begin(), text.end(), '\0')};
}

Plan::~Plan() {
  while (!parts.empty()) parts.pop_back();  // users before what they use
}

bool Plan::has(cudnnBackendNumericalNote_t note) const {
  return std::find(notes.begin(), notes.end(), note) != notes.end();
}

std::string Plan::note_names() const {
  static constexpr std::array<const char*, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> kNames{
      "tensor_core",  "down_convert_inputs", "reduced_precision_reduction",
      "fft",          "nondeterministic",    "winograd",
      "winograd_4x4", "winograd_6x6",        "winograd_13x13",
      "strict_nan"};
  std::string names;
  for (const cudnnBackendNumericalNote_t note : notes) {
    if (!names.empty()) names += ' ';
    names += static_cast<size_t>(note) < kNames.size() ? kNames[static_cast<size_t>(note)] : "unknown";
  }
  return names;
}

std::vector<cudnnBackendNumericalNote_t> banned_notes(const ConvKey& key) {
  std::vector<cudnnBackendNumericalNote_t> banned{CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION};
  if (key.dtype == f32 && !key.tf32) {
    banned.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    banned.push_back(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  }
  if (key.deterministic) banned.push_back(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  return banned;
}

std::shared_ptr<const Plan> find_plan(const ConvKey& key, const Target& target, std::string& reason,
                                      int64_t most_workspace) {
  auto found = std::make_shared<Plan>();
  GraphBuilder builder(key);
  try {
    builder.build(target);
  } catch (const Refusal& refusal) {
    reason = refusal.what();
    return nullptr;
  }
  found->uids = std::move(builder.uids);
  const std::vector<cudnnBackendNumericalNote_t> banned = banned_notes(key);
  reason = "no engine is proposed";
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    found->fallback = mode == CUDNN_HEUR_MODE_FALLBACK;
    for (Descriptor& configuration : configurations(builder.parts.back(), mode, target, reason)) {
      ++found->tried;
      Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
      configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, std::span<Descriptor>(&engine, 1));
      found->notes =
          engine.get<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
      if (std::any_of(banned.begin(), banned.end(), [&](auto note) { return found->has(note); })) {
        reason = fmt::format("engines are {}", found->note_names());
        continue;
      }
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan");
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (target.handle()) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle());
      if (target.device()) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device());
      if (const cudnnStatus_t status = plan.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
        reason = str(status);
        continue;
      }
      found->workspace = plan.get<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1).at(0);
      if (found->workspace > most_workspace) {
        reason = fmt::format("the plan wants {} bytes of workspace", found->workspace);
        continue;
      }
      found->behavior =
          engine.get<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
      found->parts = std::move(builder.parts);
      found->parts.push_back(std::move(configuration));
      found->parts.push_back(std::move(plan));
      reason.clear();
      return found;
    }
  }
  return nullptr;
}

}  // namespace weft::cudnn
