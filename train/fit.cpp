// The loop.
#include "train/fit.h"

#include <cmath>
#include <optional>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "data/loader.h"
#include "optim/loss_scaler.h"
#include "tensor/threads.h"
#include "train/loss_mean.h"
#include "train/progress.h"
#include "train/step_graph.h"

namespace weft::train {

Fitted fit(nn::Module& model, const Task& task, const data::Dataset& dataset, optim::Optimizer& optimizer,
           const FitOptions& o, const std::function<std::string(int64_t epoch)>& after_epoch) {
  constexpr int64_t kReadEvery = 50;  // steps between waits for a device
  optim::LossScaler scaler({.enabled = o.amp == f16});
  data::Loader loader(dataset, {.batch = o.batch,
                                .shuffle = !o.sampler,
                                .sampler = o.sampler,
                                .workers = o.workers,
                                .seed = o.seed,
                                .device = o.device});
  std::optional<optim::Scheduler> schedule;
  if (o.schedule) schedule.emplace(optimizer, o.schedule(o.epochs * loader.batches()));
  const auto gradients = [&](const data::Batch& batch) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const Autocast autocast(o.amp);
      loss = task.loss(model(batch.x), batch.y);
    }
    scaler.scale(loss).backward();
    return loss;
  };
  StepGraph train_step(
      o.device, optimizer, gradients, [&] { scaler.step(optimizer, {.max_norm = o.max_norm}); },
      !o.cuda_graphs     ? "not asked for"
      : scaler.enabled() ? "loss scaling reads the gradients' norm back at each step"
                         : "");
  Fitted r;
  Progress progress(stdout, o.epochs);
  for (int64_t epoch = 1; epoch <= o.epochs; ++epoch) {
    const FlushDenormals flush;
    progress.begin_epoch(epoch, loader.batches());
    LossMean epoch_loss(o.device);
    int64_t step = 0;
    for (auto [x, y] : loader) {
      const int64_t samples = y.size(0);
      const Tensor loss = train_step({x, y});
      if (schedule) schedule->step();
      epoch_loss.add(loss, samples);
      if (++step % kReadEvery == 1 || step == loader.batches()) epoch_loss.read();
      WEFT_CHECK(std::isfinite(epoch_loss.value()), "train",
                 "the loss has become {} by step {} of epoch {}; the training diverges, try a lower --lr",
                 epoch_loss.value(), step, epoch);
      progress.step(step, samples, epoch_loss.value());
    }
    r.steps += step;
    r.samples += epoch_loss.count();
    r.training_seconds += progress.training_seconds();
    r.train_loss = epoch_loss.value();
    r.skipped_steps = scaler.skipped();
    if (o.cuda_graphs) r.steps_not_captured = train_step.hindrance();
    progress.end_epoch(r.train_loss, after_epoch(epoch));
  }
  return r;
}

}  // namespace weft::train
