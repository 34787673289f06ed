// AlexNet: Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks", NIPS
// 2012.
#pragma once

#include "nn/conv.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/pool.h"
#include "nn/sequential.h"

namespace weft::models {

struct AlexNetOptions {
  int64_t channels = 3;  ///< of the images
  int64_t classes = 1000;
  int64_t groups = 1;  ///< 2: the second, fourth and fifth convolution in two towers, as the paper had them on two GPUs
  double dropout = 0.5;
  int64_t enlarge = 1;  ///< repeats each pixel this often in both directions first: 8 makes 28×28 images fit
};

/// Images [N, 3, 224, 224], padded by 2 in the first layer so that the paper's 55×55 maps come out; without local
/// response normalisation, which has no parameters. 62,378,344 parameters; 60,965,224 with two groups.
struct AlexNet : nn::Sequential {
  using Options = AlexNetOptions;
  explicit AlexNet(Options o = {}) {
    constexpr Activation relu = Activation::relu;
    if (o.enlarge > 1) add("enlarge", [times = o.enlarge](const Tensor& x) { return enlarged(x, times); });
    add<nn::Conv2d>("conv1",
                    {.in = o.channels, .out = 96, .kernel = 11, .stride = 4, .padding = 2, .activation = relu});
    add<nn::MaxPool2d>("pool1", {.kernel = 3, .stride = 2});
    add<nn::Conv2d>("conv2", {.in = 96, .out = 256, .kernel = 5, .padding = 2, .groups = o.groups, .activation = relu});
    add<nn::MaxPool2d>("pool2", {.kernel = 3, .stride = 2});
    add<nn::Conv2d>("conv3", {.in = 256, .out = 384, .kernel = 3, .padding = 1, .activation = relu});
    add<nn::Conv2d>("conv4",
                    {.in = 384, .out = 384, .kernel = 3, .padding = 1, .groups = o.groups, .activation = relu});
    add<nn::Conv2d>("conv5",
                    {.in = 384, .out = 256, .kernel = 3, .padding = 1, .groups = o.groups, .activation = relu});
    add<nn::MaxPool2d>("pool5", {.kernel = 3, .stride = 2});
    add<nn::Flatten>("flatten");
    add<nn::Dropout>("drop6", {.p = o.dropout});
    add<nn::Linear>("fc6", {.in = 9216, .out = 4096, .activation = relu});
    add<nn::Dropout>("drop7", {.p = o.dropout});
    add<nn::Linear>("fc7", {.in = 4096, .out = 4096, .activation = relu});
    add<nn::Linear>("fc8", {.in = 4096, .out = o.classes});
  }

 private:
  static Tensor enlarged(const Tensor& x, int64_t times) {
    WEFT_CHECK(x.dim() == 4, "enlarge", "wants images [N, C, H, W], got {}", str(x.sizes()));
    const int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
    return x.reshape({n, c, h, 1, w, 1}).expand({n, c, h, times, w, times}).reshape({n, c, h * times, w * times});
  }
};

}  // namespace weft::models
