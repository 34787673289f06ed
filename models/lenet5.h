// LeNet-5 for 28×28 images: LeCun, Bottou, Bengio and Haffner, "Gradient-based learning applied to document
// recognition", Proceedings of the IEEE, 1998. 61,706 parameters.
#pragma once

#include "nn/activation.h"
#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/pool.h"
#include "nn/sequential.h"

namespace weft::models {

/// The variant in common use: [N, 1, 28, 28], padded by 2 in the first layer where the paper pads its images to 32×32;
/// the second convolution sees all 6 maps (the paper's table of connections has 1,516 weights there, this has 2,416);
/// plain averages and plain logits in place of trained subsampling and radial basis functions; tanh as in the paper.
struct LeNet5 : nn::Sequential {
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", {.in = 1, .out = 6, .kernel = 5, .padding = 2});
  nn::Tanh& tanh1 = add<nn::Tanh>("tanh1");
  nn::AvgPool2d& pool1 = add<nn::AvgPool2d>("pool1", {.kernel = 2});
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", {.in = 6, .out = 16, .kernel = 5});
  nn::Tanh& tanh2 = add<nn::Tanh>("tanh2");
  nn::AvgPool2d& pool2 = add<nn::AvgPool2d>("pool2", {.kernel = 2});
  nn::Flatten& flatten = add<nn::Flatten>("flatten");
  nn::Linear& fc1 = add<nn::Linear>("fc1", {.in = 400, .out = 120});
  nn::Tanh& tanh3 = add<nn::Tanh>("tanh3");
  nn::Linear& fc2 = add<nn::Linear>("fc2", {.in = 120, .out = 84});
  nn::Tanh& tanh4 = add<nn::Tanh>("tanh4");
  nn::Linear& fc3 = add<nn::Linear>("fc3", {.in = 84, .out = 10});
};

}  // namespace weft::models
