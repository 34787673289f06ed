// Evaluation of classifiers.
#include "train/evaluate.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "data/loader.h"
#include "nn/loss.h"
#include "tensor/memory.h"
#include "tensor/threads.h"
#include "train/metrics.h"

namespace weft::train {

Scores evaluate(nn::Module& model, const data::Dataset& dataset, Device device, int64_t batch) {
  WEFT_CHECK(dataset.size() > 0, "evaluate", "the data set is empty");
  const NoGrad no_grad;
  const FlushDenormals flush;
  memory::release_cache(device);  // blocks of training's sizes, of little use here
  const nn::Evaluation evaluation(model);
  Mean loss;
  int64_t right = 0;
  data::Loader loader(dataset, {.batch = batch});
  for (auto [x, y] : loader) {
    const Tensor target = y.to(device), logits = model(x.to(device));
    loss.add(nn::cross_entropy(logits, target).item(), target.numel());
    right += static_cast<int64_t>(sum(eq(argmax(logits, 1), target)).item());
  }
  return {loss.value(), 100 * static_cast<double>(right) / static_cast<double>(dataset.size())};
}

}  // namespace weft::train
