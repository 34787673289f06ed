// The training loop of the apps: epochs over a data set, with a schedule, mixed precision, captured steps and progress.
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "data/sampler.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"
#include "train/task.h"

namespace weft::train {

struct FitOptions {
  int64_t epochs = 1;
  int64_t batch = 64;
  std::shared_ptr<const data::Sampler> sampler = nullptr;  ///< an order in place of one that is shuffled each epoch
  int workers = 0;                                         ///< threads that make batches ahead
  uint64_t seed = 0;                                       ///< of the order
  Device device = {};
  DType amp = f32;                                            ///< of products; f16 with loss scaling
  bool cuda_graphs = false;                                   ///< captures a step and replays it
  double max_norm = std::numeric_limits<double>::infinity();  ///< gradients are clipped to it
  /// The learning rate of each step, by the number of all steps; none: the optimizer's own.
  std::function<optim::Schedule(int64_t steps)> schedule = {};
};

struct Fitted {
  double train_loss = std::numeric_limits<double>::quiet_NaN();  ///< the last epoch's mean
  int64_t steps = 0, skipped_steps = 0, samples = 0;
  double training_seconds = 0;     ///< without what comes after epochs
  std::string steps_not_captured;  ///< why, where they were to be
};

/// Trains `model`, which is on the device, and prints a line an epoch, which ends with what `after_epoch` says ("test
/// 98.31 %"). A loss that is not finite is an error.
Fitted fit(nn::Module& model, const Task& task, const data::Dataset& dataset, optim::Optimizer& optimizer,
           const FitOptions& options, const std::function<std::string(int64_t epoch)>& after_epoch);

}  // namespace weft::train
