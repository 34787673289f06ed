// The sizes themselves. The twin of each in PyTorch has the same name in bench/peers/ops_torch.py.
#include "bench/op_sizes.h"

#include "tensor/view.h"
#include "weft.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;

OpCase entry(const char* name, std::vector<In> inputs, Tensor (*run)(const Tensors&), bool gradient = true) {
  return {.name = name, .inputs = {}, .run = run, .reference = {}, .gradient = gradient, .bench = std::move(inputs)};
}

/// Small values, for weights that many are summed with.
In small(Shape sizes) { return {sizes, In::floating, -0.1, 0.1}; }

Tensor image(const Tensor& x) { return x.permute({0, 3, 1, 2}); }

/// A convolution of n images [in, size, size] with `out` kernels of k × k.
OpCase conv(const char* name, int64_t n, int64_t in, int64_t size, int64_t out, int64_t k, Conv2dOptions options = {}) {
  OpCase c = entry(name, {{{n, size, size, in}}, {{out, in / options.groups, k, k}}, {{out}}}, nullptr);
  c.run = [options](const Tensors& x) { return conv2d(image(x[0]), x[1], x[2], options); };
  return c;
}

}  // namespace

OpCases more_sizes() {
  const In million{{1 << 20}}, square{{1024, 1024}}, tall{{4096, 256}}, classes{{512, 1000}}, images{{64, 24, 24, 64}};
  return {
      entry("where/large", {In::booleans({1 << 20}), million, million},
            [](const Tensors& x) { return where(x[0], x[1], x[2]); }),
      entry("bias", {tall, {{256}}}, [](const Tensors& x) { return x[0] + x[1]; }),
      entry("bias/columns", {tall, {{4096, 1}}}, [](const Tensors& x) { return x[0] * x[1]; }),
      entry("bias/channels_last", {images, {{1, 64, 1, 1}}}, [](const Tensors& x) { return image(x[0]) + x[1]; }),
      entry("mean/large", {million}, [](const Tensors& x) { return mean(x[0]); }),
      entry("mean/channels_last", {images},
            [](const Tensors& x) {
              return mean(image(x[0]), {0, 2, 3});
            }),
      entry("logsumexp/large", {square}, [](const Tensors& x) { return logsumexp(x[0], {1}); }),
      entry("max/all", {million}, [](const Tensors& x) { return max(x[0]); }),
      entry("softmax/classes", {classes}, [](const Tensors& x) { return softmax(x[0], 1); }),
      entry("log_softmax/classes", {classes}, [](const Tensors& x) { return log_softmax(x[0], 1); }),
      entry("layer_norm/wide", {{{4096, 768}}, In::positive({768}), {{768}}},
            [](const Tensors& x) { return layer_norm(x[0], x[1], x[2]); }),
      entry("rms_norm/wide", {{{4096, 768}}, In::positive({768})},
            [](const Tensors& x) { return rms_norm(x[0], x[1]); }),
      entry("max_pool2d/channels_last", {images},
            [](const Tensors& x) { return max_pool2d(image(x[0]), {.kernel = 2}); }),
      entry("avg_pool2d/channels_last", {images},
            [](const Tensors& x) { return avg_pool2d(image(x[0]), {.kernel = 2}); }),
      entry("embedding/wide", {{{20000, 300}}, In::indices({25600}, 20000)},
            [](const Tensors& x) { return embedding(x[0], x[1]); }),
      entry("transpose", {square}, [](const Tensors& x) { return x[0].transpose(0, 1).contiguous(); }),
      entry("cross_entropy/classes", {classes, In::indices({512}, 1000)},
            [](const Tensors& x) { return cross_entropy(x[0], x[1]); }),
      entry("matmul/batched", {{{32, 128, 64}}, {{32, 64, 128}}}, [](const Tensors& x) { return matmul(x[0], x[1]); }),
      conv("conv2d/one_channel_in", 64, 1, 28, 32, 3),
      conv("conv2d/pointwise", 32, 64, 28, 128, 1),
      conv("conv2d/stride", 32, 64, 28, 128, 3, {.stride = 2, .padding = 1}),
      conv("conv2d/large_kernel", 32, 16, 28, 32, 5, {.padding = 2}),
      conv("conv2d/depthwise_large", 32, 64, 28, 64, 3, {.padding = 1, .groups = 64}),
      // The convolution of the text CNN over an embedding, and one direction of its LSTM sister.
      entry("conv1d_max/text", {small({64, 400, 300}), small({256, 300, 3}), small({256})},
            [](const Tensors& x) { return conv1d_max(x[0].transpose(1, 2), x[1], x[2], {.pool = 2}); }),
      entry("lstm/text", {small({200, 64, 64}), small({256, 64}), small({256, 64}), small({256}), small({256})},
            [](const Tensors& x) {
              return lstm(x[0], {}, {}, {x[1], x[2], x[3], x[4]}).output;
            }),
      entry("gru/text", {small({200, 64, 64}), small({192, 64}), small({192, 64}), small({192}), small({192})},
            [](const Tensors& x) {
              return gru(x[0], {}, {x[1], x[2], x[3], x[4]}).output;
            }),
      entry(
          "cast/bf16", {million}, [](const Tensors& x) { return raw::to(x[0], DType::bf16); }, false),
      entry(
          "copy/to_rows", {images}, [](const Tensors& x) { return raw::contiguous(image(x[0])); }, false),
      entry(
          "copy/to_channels_last", {{{64, 64, 24, 24}}}, [](const Tensors& x) { return raw::channels_last(x[0]); },
          false),
  };
}

}  // namespace weft::testing
