// Golden rows of conv and pool.
#include <gtest/gtest.h>

#include "autograd/ops/conv.h"
#include "autograd/ops/pool.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

GoldenRow two(const std::string& name, const Conv2dOptions& options = {}) {
  return {"conv2d/" + name, [=](Inputs in) { return conv2d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), options); }};
}

GoldenRow one(const std::string& name, const Conv1dOptions& options = {}) {
  return {"conv1d/" + name, [=](Inputs in) { return conv1d(in[0], in[1], in.size() > 2 ? in[2] : Tensor(), options); }};
}

TEST(Golden, conv) {
  const std::vector<GoldenRow> rows = {
      two("plain"),
      two("no_bias"),
      two("one_channel"),
      two("pointwise"),
      two("stride", {.stride = {2, 3}}),
      two("padding", {.padding = {1, 2}}),
      two("dilation", {.dilation = {2, 3}}),
      two("groups", {.groups = 2}),
      two("depthwise", {.padding = 1, .groups = 4}),
      two("everything", {.stride = {2, 1}, .padding = {2, 1}, .dilation = {1, 2}, .groups = 2}),
      two("relu", {.activation = Activation::relu}),
      one("plain"),
      one("no_bias"),
      one("stride", {.stride = 2}),
      one("padding", {.padding = 2}),
      one("dilation", {.dilation = 3}),
      one("groups", {.groups = 2}),
      one("everything", {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}),
  };
  check_golden("conv", rows);
}

template <class Options>
GoldenRow pooled(const char* name, Tensor (*op)(const Tensor&, const Options&), const Options& options) {
  return {name, [=](Inputs in) { return op(in[0], options); }};
}

TEST(Golden, pool) {
  const std::vector<GoldenRow> rows = {
      pooled<Pool2dOptions>("max2d/plain", max_pool2d, {.kernel = 2}),
      pooled<Pool2dOptions>("max2d/overlap", max_pool2d, {.kernel = 3, .stride = 2, .padding = 1}),
      pooled<Pool2dOptions>("max2d/ceil", max_pool2d, {.kernel = 3, .stride = 2, .ceil_mode = true}),
      pooled<Pool2dOptions>("max2d/rectangle", max_pool2d, {.kernel = {2, 3}, .stride = {1, 2}}),
      pooled<Pool2dOptions>("avg2d/plain", avg_pool2d, {.kernel = 2}),
      pooled<Pool2dOptions>("avg2d/padding_counts", avg_pool2d, {.kernel = 3, .stride = 2, .padding = 1}),
      pooled<Pool2dOptions>("avg2d/padding_left_out", avg_pool2d,
                            {.kernel = 3, .stride = 2, .padding = 1, .count_padding = false}),
      pooled<Pool2dOptions>("avg2d/ceil", avg_pool2d, {.kernel = 3, .stride = 2, .ceil_mode = true}),
      pooled<Pool2dOptions>("avg2d/ceil_padding", avg_pool2d,
                            {.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}),
      pooled<Pool1dOptions>("max1d/plain", max_pool1d, {.kernel = 2}),
      pooled<Pool1dOptions>("max1d/overlap", max_pool1d, {.kernel = 3, .stride = 2, .padding = 1}),
      pooled<Pool1dOptions>("max1d/ceil", max_pool1d, {.kernel = 2, .ceil_mode = true}),
      pooled<Pool1dOptions>("avg1d/plain", avg_pool1d, {.kernel = 2}),
      pooled<Pool1dOptions>("avg1d/padding_counts", avg_pool1d, {.kernel = 3, .stride = 2, .padding = 1}),
      pooled<Pool1dOptions>("avg1d/ceil", avg_pool1d, {.kernel = 2, .ceil_mode = true}),
      {"global_avg/2d", [](Inputs in) { return global_avg_pool(in[0]); }},
      {"global_avg/1d", [](Inputs in) { return global_avg_pool(in[0]); }},
      {"global_max/2d", [](Inputs in) { return global_max_pool(in[0]); }},
      {"global_max/1d", [](Inputs in) { return global_max_pool(in[0]); }},
  };
  check_golden("pool", rows);
}

}  // namespace
}  // namespace weft::testing
