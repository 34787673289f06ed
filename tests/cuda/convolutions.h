// The convolutions that plans are made for: those of the tests, of the models, and of today's image networks.
#pragma once

#include <vector>

#include "tensor/kernel_args.h"
#include "tensor/shape.h"

namespace weft::testing {

struct Convolution {
  const char* name;  ///< that of its OpCase, where it has one
  Shape x, w;
  ConvParameters parameters = {};

  Shape y() const {
    auto size = [](int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
      return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    };
    const ConvParameters& c = parameters;
    return {x[0], w[0], size(x[2], w[2], c.stride.h, c.padding.h, c.dilation.h),
            size(x[3], w[3], c.stride.w, c.padding.w, c.dilation.w)};
  }
};

/// Of tests/ops/conv_cases.cpp, each with its benchmark's sizes; a test holds the two files together.
inline std::vector<Convolution> case_convolutions() {
  return {
      {"conv2d/plain", {2, 3, 6, 5}, {4, 3, 3, 3}},
      {"conv2d/winograd", {2, 16, 9, 10}, {32, 16, 3, 3}},
      {"conv2d/winograd_wide", {1, 48, 12, 12}, {80, 48, 3, 3}, {.padding = 1}},
      {"conv2d/winograd_padded", {2, 16, 7, 8}, {16, 16, 3, 3}, {.padding = {2, 1}}},
      {"conv2d/winograd_relu", {3, 16, 6, 7}, {16, 16, 3, 3}, {.padding = 1}},
      {"conv2d/winograd_gelu", {2, 16, 6, 7}, {16, 16, 3, 3}, {.padding = 1}},
      {"conv2d/no_bias", {2, 3, 6, 5}, {4, 3, 3, 2}},
      {"conv2d/one_channel", {2, 1, 7, 7}, {4, 1, 3, 3}},
      {"conv2d/relu", {2, 3, 6, 5}, {4, 3, 3, 3}},
      {"conv2d/gelu", {2, 3, 6, 5}, {4, 3, 3, 3}},
      {"conv2d/gelu_tanh", {2, 3, 6, 5}, {4, 3, 3, 3}},
      {"conv2d/stride_padding", {2, 2, 9, 8}, {3, 2, 3, 3}, {.stride = {2, 3}, .padding = {1, 2}}},
      {"conv2d/stride_does_not_divide", {1, 2, 16, 16}, {2, 2, 7, 7}, {.stride = 3, .padding = 2}},
      {"conv2d/last_row_never_read", {1, 2, 6, 6}, {2, 2, 3, 3}, {.stride = 2}},
      {"conv2d/one_by_one_stride", {2, 3, 5, 5}, {4, 3, 1, 1}, {.stride = 2}},
      {"conv2d/dilation", {1, 2, 9, 9}, {3, 2, 3, 3}, {.padding = 1, .dilation = {2, 3}}},
      {"conv2d/groups", {2, 4, 6, 6}, {6, 2, 3, 3}, {.padding = 1, .groups = 2}},
      {"conv2d/groups_wide", {2, 16, 5, 5}, {24, 8, 3, 3}, {.stride = 2, .padding = 1, .groups = 2}},
      {"conv2d/one_by_one", {2, 8, 5, 5}, {6, 8, 1, 1}},
      {"conv2d/one_by_one_groups", {2, 8, 5, 5}, {6, 4, 1, 1}, {.groups = 2}},
      {"conv2d/depthwise_dilated_stride",
       {2, 4, 9, 9},
       {4, 1, 3, 3},
       {.stride = 2, .padding = 1, .dilation = 2, .groups = 4}},
      {"conv1d", {2, 3, 1, 11}, {4, 3, 1, 3}, {.stride = {1, 2}, .padding = {0, 1}, .dilation = {1, 2}}},
  };
}

/// Of other tests and of the benchmarks.
inline std::vector<Convolution> test_convolutions() {
  return {
      {"bench/plain", {64, 32, 26, 26}, {64, 32, 3, 3}},
      {"bench/pointwise", {32, 64, 28, 28}, {128, 64, 1, 1}},
      {"bench/stride", {32, 64, 28, 28}, {128, 64, 3, 3}, {.stride = 2, .padding = 1}},
      {"bench/large_kernel", {32, 16, 28, 28}, {32, 16, 5, 5}, {.padding = 2}},
      {"bench/depthwise", {32, 64, 28, 28}, {64, 1, 3, 3}, {.padding = 1, .groups = 64}},
      {"edges/padded_pointwise", {2, 3, 4, 4}, {2, 3, 1, 1}, {.padding = 1}},
      {"edges/padded", {2, 3, 4, 4}, {2, 3, 3, 3}, {.padding = 1}},
      {"golden/plain", {2, 3, 6, 7}, {4, 3, 3, 3}},
      {"golden/pointwise", {2, 3, 4, 5}, {4, 3, 1, 1}},
      {"golden/stride", {2, 3, 8, 7}, {4, 3, 3, 2}, {.stride = {2, 3}}},
      {"golden/padding", {2, 3, 5, 4}, {4, 3, 3, 3}, {.padding = {1, 2}}},
      {"golden/dilation", {2, 3, 8, 9}, {4, 3, 3, 3}, {.dilation = {2, 3}}},
      {"golden/depthwise", {2, 4, 5, 5}, {4, 1, 3, 3}, {.padding = 1, .groups = 4}},
      {"golden/everything",
       {2, 4, 9, 8},
       {6, 2, 3, 2},
       {.stride = {2, 1}, .padding = {2, 1}, .dilation = {1, 2}, .groups = 2}},
      {"conv_test/squares", {2, 32, 14, 14}, {32, 32, 3, 3}},
      {"conv_test/last_row", {1, 2, 6, 6}, {2, 2, 3, 3}, {.stride = 2}},
      {"one pixel", {1, 1, 1, 1}, {1, 1, 1, 1}},
  };
}

/// Of the models, with the batch sizes of the jobs, and the layers of residual networks.
inline std::vector<Convolution> model_convolutions() {
  return {
      {"mnist/conv1", {64, 1, 28, 28}, {32, 1, 3, 3}},
      {"mnist/conv2", {64, 32, 26, 26}, {64, 32, 3, 3}},
      {"mnist/conv2 of a test batch", {1000, 32, 26, 26}, {64, 32, 3, 3}},
      {"mnist/conv2 of the last batch", {32, 32, 26, 26}, {64, 32, 3, 3}},
      {"lenet/conv1", {64, 1, 28, 28}, {6, 1, 5, 5}, {.padding = 2}},
      {"lenet/conv2", {64, 6, 14, 14}, {16, 6, 5, 5}},
      {"alexnet/conv1", {64, 3, 224, 224}, {96, 3, 11, 11}, {.stride = 4, .padding = 2}},
      {"alexnet/conv2", {64, 96, 27, 27}, {256, 96, 5, 5}, {.padding = 2}},
      {"alexnet/conv2 of two towers", {64, 96, 27, 27}, {256, 48, 5, 5}, {.padding = 2, .groups = 2}},
      {"alexnet/conv3", {64, 256, 13, 13}, {384, 256, 3, 3}, {.padding = 1}},
      {"alexnet/conv4", {64, 384, 13, 13}, {384, 384, 3, 3}, {.padding = 1}},
      {"alexnet/conv5 of two towers", {64, 384, 13, 13}, {256, 192, 3, 3}, {.padding = 1, .groups = 2}},
      {"resnet/stem", {32, 3, 224, 224}, {64, 3, 7, 7}, {.stride = 2, .padding = 3}},
      {"resnet/1x1", {32, 64, 56, 56}, {256, 64, 1, 1}},
      {"resnet/3x3", {32, 64, 56, 56}, {64, 64, 3, 3}, {.padding = 1}},
      {"resnet/3x3 stride", {32, 128, 56, 56}, {128, 128, 3, 3}, {.stride = 2, .padding = 1}},
      {"resnet/1x1 stride", {32, 256, 56, 56}, {512, 256, 1, 1}, {.stride = 2}},
      {"resnet/3x3 last", {32, 512, 7, 7}, {512, 512, 3, 3}, {.padding = 1}},
      {"resnext/3x3 groups", {32, 128, 28, 28}, {128, 4, 3, 3}, {.padding = 1, .groups = 32}},
      {"mobilenet/depthwise stride", {32, 96, 56, 56}, {96, 1, 3, 3}, {.stride = 2, .padding = 1, .groups = 96}},
      {"segmentation/dilated", {8, 64, 28, 28}, {64, 64, 3, 3}, {.padding = 2, .dilation = 2}},
  };
}

}  // namespace weft::testing
