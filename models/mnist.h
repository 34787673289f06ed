// The convolutional net of the MNIST job: logits of 10 classes from [N, 1, 28, 28], 1,199,882 parameters.
#pragma once

#include "nn/conv.h"
#include "nn/linear.h"
#include "nn/pool.h"
#include "nn/sequential.h"

namespace weft::models {

/// Conv 1→32 → ReLU → Conv 32→64 → ReLU → max-pool 2 → Linear 9216→128 → ReLU → Linear 128→10, kernels 3×3. The second
/// ReLU comes after the pool: both are monotone, so the order makes no difference, and it has a quarter of the work.
struct MnistNet : nn::Sequential {
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", {.in = 1, .out = 32, .kernel = 3, .activation = Activation::relu});
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", {.in = 32, .out = 64, .kernel = 3});
  nn::MaxPool2d& pool = add<nn::MaxPool2d>("pool", {.kernel = 2, .activation = Activation::relu});
  nn::Flatten& flatten = add<nn::Flatten>("flatten");
  nn::Linear& fc1 = add<nn::Linear>("fc1", {.in = 9216, .out = 128, .activation = Activation::relu});
  nn::Linear& fc2 = add<nn::Linear>("fc2", {.in = 128, .out = 10});
};

}  // namespace weft::models
