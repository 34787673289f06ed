// Evaluation of classifiers.
#include "train/evaluate.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "data/loader.h"
#include "nn/loss.h"
#include "tensor/threads.h"
#include "train/metrics.h"

namespace weft::train {

Scores evaluate(nn::Module& model, const data::Dataset& dataset, Device device, int64_t batch) {
  WEFT_CHECK(dataset.size() > 0, "evaluate", "the data set is empty");
  const NoGrad no_grad;
  const FlushDenormals flush;
  const bool training = model.training();
  model.eval();
  Mean loss, accuracy;
  data::Loader loader(dataset, {.batch = batch});
  for (auto [x, y] : loader) {
    const Tensor target = y.to(device), logits = model(x.to(device));
    loss.add(nn::cross_entropy(logits, target).item(), target.numel());
    accuracy.add(100 * mean(eq(argmax(logits, 1), target).to(f32)).item(), target.numel());
  }
  model.train(training);
  return {loss.value(), accuracy.value()};
}

}  // namespace weft::train
