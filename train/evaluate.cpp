// Evaluation of classifiers.
#include "train/evaluate.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/reduce.h"
#include "data/loader.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include "train/loss_mean.h"

namespace weft::train {

Scores evaluate(nn::Module& model, const Task& task, const data::Dataset& dataset, Device device, int64_t batch) {
  WEFT_CHECK(dataset.size() > 0, "evaluate", "the data set is empty");
  const NoGrad no_grad;
  const FlushDenormals flush;
  memory::release_cache(device);  // blocks of training's sizes, of little use here
  const nn::Evaluation evaluation(model);
  LossMean loss(device);
  Tensor right = zeros({}, {i64, device});
  data::Loader loader(dataset, {.batch = batch, .device = device});
  for (auto [x, y] : loader) {
    const Tensor output = model(x);
    loss.add(task.loss(output, y), y.size(0));
    right.add_(sum(task.right(output, y)));
  }
  return {loss.read(), 100 * right.item() / static_cast<double>(dataset.size())};
}

}  // namespace weft::train
