// cuDNN's plans, made without a GPU from the description of one: every convolution has a plan in every direction, and
// the strict ones are strict. h200.json is written by hand, not read off a device; one that was (device_description
// writes it) may stand in its place.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <thread>

#include "autograd/ops/conv.h"
#include "autograd/ops/elementwise.h"
#include "tensor/cuda/cudnn_graph.h"
#include "tensor/view.h"
#include "tests/cuda/convolutions.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"

namespace weft::cudnn {
namespace {

using testing::Convolution;
using enum Direction;

constexpr Direction kDirections[] = {forward, backward_data, backward_weight};

std::string description() {
  std::ifstream file(WEFT_DEVICE_DESCRIPTION);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The described device; where cuDNN refuses the description, the test is skipped.
class CudnnPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      target_ = std::make_unique<Target>(description());
    } catch (const Error& error) {
      GTEST_SKIP() << "cuDNN " << cudnnGetVersion() << " refuses the description of the device: " << error.what();
    }
  }

  std::shared_ptr<const Plan> plan(const ConvKey& key, int64_t most_workspace = kMostWorkspace) {
    return find_plan(key, *target_, reason_, most_workspace);
  }

  std::unique_ptr<Target> target_;
  std::string reason_;
};

struct Layout {
  const char* name;
  bool x_channels_last, w_channels_last;
};
constexpr Layout kMixed{"x and y channels-last, w row-major", true, false};
constexpr Layout kLayouts[] = {kMixed, {"all channels-last", true, true}, {"all row-major", false, false}};

Operand operand(const Shape& sizes, bool channels_last) {
  const Shape strides = channels_last ? channels_last_strides(sizes) : contiguous_strides(sizes);
  Operand o;
  std::copy_n(sizes.begin(), 4, o.sizes.begin());
  std::copy_n(strides.begin(), 4, o.strides.begin());
  return o;
}

ConvKey key_of(const Convolution& c, Direction direction = forward, DType dtype = f32, const Layout& layout = kMixed) {
  return {.direction = direction,
          .dtype = dtype,
          .x = operand(c.x, layout.x_channels_last),
          .w = operand(c.w, layout.w_channels_last),
          .y = operand(c.y(), layout.x_channels_last),
          .stride = c.parameters.stride,
          .padding = c.parameters.padding,
          .dilation = c.parameters.dilation,
          .groups = c.parameters.groups};
}

std::vector<Convolution> all_convolutions() {
  std::vector<Convolution> all = testing::case_convolutions();
  for (const auto& more : {testing::test_convolutions(), testing::model_convolutions()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

const Convolution& mnist_conv2() {
  static const std::vector<Convolution> models = testing::model_convolutions();
  return models.at(1);
}

std::string about(const Convolution& c, const ConvKey& key, const Layout& layout) {
  constexpr const char* kNames[] = {"forward", "backward_data", "backward_weight"};
  return fmt::format("{}, {}, {}, {}{}{}", c.name, kNames[static_cast<size_t>(key.direction)], name(key.dtype),
                     layout.name, key.tf32 ? ", tf32" : "", key.deterministic ? ", deterministic" : "");
}

void expect_strict(const ConvKey& key, const Plan& plan, const std::string& what) {
  const std::string notes = ' ' + plan.note_names() + ' ';
  auto has = [&](const char* note) { return notes.find(std::string(" ") + note + ' ') != std::string::npos; };
  EXPECT_FALSE(has("reduced_precision_reduction")) << what << ":" << notes;
  EXPECT_FALSE(key.deterministic && has("nondeterministic")) << what << ":" << notes;
  EXPECT_FALSE(key.dtype == f32 && !key.tf32 && (has("tensor_core") || has("down_convert_inputs")))
      << what << ":" << notes;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(CudnnPlan, EveryConvolutionHasOneInEveryDirection) {
  const auto start = std::chrono::steady_clock::now();
  int built = 0, tensor_core = 0, fallback = 0;
  auto expect_plan = [&](const Convolution& c, const ConvKey& key, const Layout& layout) {
    const auto found = plan(key);
    ASSERT_NE(found, nullptr) << about(c, key, layout) << ": " << reason_;
    expect_strict(key, *found, about(c, key, layout));
    EXPECT_EQ(found->uids, (std::vector<int64_t>{kUidX, kUidW, kUidY}));
    ++built, tensor_core += found->has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE), fallback += found->fallback;
  };
  for (const Convolution& c : all_convolutions())
    for (const Layout& layout : kLayouts)
      for (const Direction direction : kDirections)
        for (const DType dtype : {f32, bf16, f16, f64}) {
          ConvKey key = key_of(c, direction, dtype, layout);
          expect_plan(c, key, layout);
          if (dtype != f32) continue;
          key.tf32 = true, key.deterministic = false;
          expect_plan(c, key, layout);
        }
  std::cout << fmt::format("{} plans in {:.1f} s, {} through tensor cores, {} from the fallback list\n", built,
                           seconds_since(start), tensor_core, fallback);
}

// A forward convolution with bias and ReLU in one pass: wanted, but the caller does without where there is none.
TEST_F(CudnnPlan, EpilogueIsFusedWhereThereIsAnEngine) {
  const auto start = std::chrono::steady_clock::now();
  int asked = 0, found_plans = 0;
  for (const Convolution& c : all_convolutions())
    for (const DType dtype : {f32, bf16})
      for (const Epilogue epilogue : {Epilogue::bias, Epilogue::bias_relu}) {
        ConvKey key = key_of(c, forward, dtype);
        key.epilogue = epilogue;
        ++asked;
        const auto found = plan(key);
        if (!found) continue;
        expect_strict(key, *found, about(c, key, kMixed));
        EXPECT_EQ(found->uids, (std::vector<int64_t>{kUidX, kUidW, kUidY, kUidBias}));
        ++found_plans;
      }
  EXPECT_GT(found_plans, 0);
  std::cout << fmt::format("{} of {} fused plans in {:.1f} s\n", found_plans, asked, seconds_since(start));
}

TEST_F(CudnnPlan, FilterHasSomethingToFilter) {
  std::map<cudnnBackendNumericalNote_t, int> seen;
  for (const Convolution& c : testing::model_convolutions())
    for (const Direction direction : kDirections) {
      ConvKey key = key_of(c, direction);
      key.tf32 = true, key.deterministic = false;
      const auto found = plan(key);
      ASSERT_NE(found, nullptr) << reason_;
      for (const cudnnBackendNumericalNote_t note : found->notes) ++seen[note];
    }
  EXPECT_GT(seen[CUDNN_NUMERICAL_NOTE_TENSOR_CORE], 0);
  EXPECT_GT(seen[CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC], 0);
}

// All that happens before an execution, with addresses that nobody reads.
TEST_F(CudnnPlan, AddressesMakeAVariantPack) {
  alignas(16) char memory[4] = {};
  ConvKey key = key_of(mnist_conv2());
  for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias_relu}) {
    key.epilogue = epilogue;
    const auto found = plan(key);
    ASSERT_NE(found, nullptr) << reason_;
    EXPECT_NE(variant_pack(*found, {memory, memory, memory, memory}, memory).raw(), nullptr);
  }
}

TEST_F(CudnnPlan, WorkspaceKeepsToItsLimit) {
  const ConvKey key = key_of(mnist_conv2());
  const auto free = plan(key), none = plan(key, 0);
  ASSERT_NE(free, nullptr) << reason_;
  ASSERT_NE(none, nullptr) << reason_;
  EXPECT_GT(free->workspace, 0);
  EXPECT_EQ(none->workspace, 0);
}

TEST_F(CudnnPlan, OperandsMayBeAlignedToNoMoreThanAnElement) {
  for (const Direction direction : kDirections)
    for (const DType dtype : {f32, bf16, f16, f64}) {
      ConvKey key = key_of(mnist_conv2(), direction, dtype);
      key.alignment = size_of(dtype);
      EXPECT_NE(plan(key), nullptr) << name(dtype) << ": " << reason_;
    }
}

TEST_F(CudnnPlan, WhatCudnnDoesNotDoIsNoPlanWithAReason) {
  ConvKey key = key_of(mnist_conv2());
  key.y.sizes[2] += 1;  // not what the window makes of x
  EXPECT_EQ(plan(key), nullptr);
  EXPECT_NE(reason_.find("cudnnBackendFinalize(convolution operation): CUDNN_STATUS_"), std::string::npos) << reason_;
  key = key_of(mnist_conv2());
  key.dtype = i64;
  EXPECT_ERROR(plan(key), "[cudnn] has no convolution of i64");
}

TEST_F(CudnnPlan, CacheAsksOnce) {
  PlanCache cache;
  ConvKey good = key_of(mnist_conv2()), bad = good;
  bad.y.sizes[2] += 1;
  const auto first = cache.find(good, *target_);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(cache.find(good, *target_), first);
  EXPECT_EQ(cache.find(bad, *target_), nullptr);
  EXPECT_EQ(cache.find(bad, *target_), nullptr);
  const PlanStatistics now = cache.statistics();
  EXPECT_EQ(now.hits, 2);
  EXPECT_EQ(now.misses, 2);
  EXPECT_EQ(now.plans, 1);
  EXPECT_EQ(now.none, 1);
  EXPECT_NE(now.reason, "");
  good.alignment /= 2;
  EXPECT_NE(cache.find(good, *target_), first);
  EXPECT_EQ(cache.statistics().plans, 2);
}

TEST_F(CudnnPlan, CacheServesManyThreads) {
  PlanCache cache;
  std::vector<std::thread> threads;
  std::vector<std::shared_ptr<const Plan>> found(4);
  for (size_t i = 0; i < found.size(); ++i)
    threads.emplace_back([&, i] { found[i] = cache.find(key_of(mnist_conv2()), *target_); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : found) EXPECT_EQ(one, found[0]);
  EXPECT_EQ(cache.statistics().misses, 1);
}

TEST_F(CudnnPlan, DescriptionIsWhatItWasMadeFrom) {
  const std::string text = json_of(*target_->device());
  EXPECT_NE(text.find("\"NVIDIA H200\""), std::string::npos) << text;
  EXPECT_EQ(json_of(*Target(text).device()), text);
}

TEST(Cudnn, DescriptionThatIsNoneIsRefused) { EXPECT_ERROR(Target("{"), "[cudnn] cudnnBackend"); }

// Where there is a device, its handle gives the same plans as its description.
TEST(Cudnn, PlansOfTheDeviceAreThoseOfItsDescription) {
  int devices = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&devices); status != cudaSuccess || devices == 0) {
    EXPECT_ERROR(device_description(), "[cuda] cudaGetDevice: ");
    GTEST_SKIP() << "no CUDA device: " << cudaGetErrorString(status);
  }
  const Target described(device_description());
  cudnnHandle_t raw = nullptr;
  check(cudnnCreate(&raw), "cudnnCreate");
  const std::unique_ptr<cudnnContext, decltype(&cudnnDestroy)> handle(raw, cudnnDestroy);
  for (const Convolution& c : testing::model_convolutions())
    for (const Direction direction : kDirections) {
      std::string reason;
      const ConvKey key = key_of(c, direction);
      const auto a = find_plan(key, Target(handle.get()), reason), b = find_plan(key, described, reason);
      ASSERT_TRUE(a && b) << about(c, key, kMixed) << ": " << reason;
      EXPECT_EQ(a->note_names(), b->note_names());
      EXPECT_EQ(a->workspace, b->workspace);
    }
}

TEST(Cudnn, EqualLayoutsHaveEqualKeys) {
  const Tensor x = ones({2, 1, 7, 7}), w = ones({4, 1, 3, 3}), y = empty_channels_last({2, 4, 5, 5});
  const ConvKey key = describe(forward, x, w, y, {});
  EXPECT_EQ(key, describe(forward, empty_channels_last({2, 1, 7, 7}), w, y, {}));
  EXPECT_EQ(hash(key), hash(describe(forward, empty_channels_last({2, 1, 7, 7}), w, y, {})));
  EXPECT_EQ(key.x.strides, (Dims{49, 1, 7, 1}));
  EXPECT_EQ(describe(forward, x, w, ones({2, 4, 5, 5}), {}).x.strides, (Dims{49, 49, 7, 1}));
  ConvKey other = key;
  other.deterministic = false;
  EXPECT_NE(hash(key), hash(other));
  const Tensor part = ones({2, 3, 9, 9}).narrow(3, 1, 7).narrow(2, 1, 7).narrow(1, 0, 1);
  EXPECT_EQ(describe(forward, part, w, y, {}).x.strides, (Dims{243, 81, 9, 1}));
}

// The table is made by hand, so each of its rows is held against the values of the case with its name.
TEST(Cudnn, TableHoldsTheConvolutionsOfTheOpCases) {
  std::map<std::string, Convolution> table;
  for (const Convolution& c : testing::case_convolutions()) table.emplace(c.name, c);
  for (const testing::OpCase& op : testing::conv_cases()) {
    ASSERT_TRUE(table.contains(op.name)) << op.name;
    const Convolution& row = table.at(op.name);
    const std::vector<Tensor> in = testing::make_inputs(op.inputs, f64);
    const ConvParameters& c = row.parameters;
    const Tensor wanted = op.run(in);
    const Tensor y = conv2d(in[0].reshape(row.x), in[1].reshape(row.w), in.size() > 2 ? in[2] : Tensor(),
                            {c.stride, c.padding, c.dilation, c.groups});
    const auto is_wanted = [&](Activation a) {
      return activate(y.clone(), a).reshape(wanted.sizes()).to_vector<double>() == wanted.to_vector<double>();
    };
    constexpr Activation kAll[] = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh};
    EXPECT_TRUE(std::ranges::any_of(kAll, is_wanted)) << op.name;
    table.erase(op.name);
  }
  for (const auto& [name, row] : table) ADD_FAILURE() << name << " is in the table, but no op case";
}

}  // namespace
}  // namespace weft::cudnn
