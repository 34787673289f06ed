// Loss and accuracy of a classifier over a data set.
#pragma once

#include "data/dataset.h"
#include "nn/module.h"
#include "train/task.h"

namespace weft::train {

struct Scores {
  double loss = 0;      ///< mean a sample
  double accuracy = 0;  ///< in percent
};

/// Runs `model` over all of `dataset` in evaluation mode, without gradients; the mode
/// it had comes back. Every sample counts once, a short last batch included. In mixed precision where the caller has an
/// Autocast.
Scores evaluate(nn::Module& model, const Task& task, const data::Dataset& dataset, Device device = {},
                int64_t batch = 64);

}  // namespace weft::train
