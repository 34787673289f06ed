// The two kinds of classifiers.
#include "train/task.h"

#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "nn/loss.h"

namespace weft::train {

const Task classification{
    .loss = [](const Tensor& output, const Tensor& target) { return nn::cross_entropy(output, target); },
    .right = [](const Tensor& output, const Tensor& target) { return eq(argmax(output, 1), target); },
};

const Task binary_classification{
    .loss = [](const Tensor& output,
               const Tensor& target) { return nn::bce_with_logits(output.reshape(target.sizes()), target); },
    .right = [](const Tensor& output,
                const Tensor& target) { return eq(gt(output.reshape(target.sizes()), 0.0), gt(target, 0.5)); },
};

}  // namespace weft::train
