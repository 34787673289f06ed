// A training step captured once as a CUDA graph and replayed as one launch: small models are bound by the launches of
// their many kernels, not by the kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "optim/optimizer.h"
#include "tensor/step_values.h"
#include "tensor/stream.h"

namespace weft::train {

/// Runs steps and gives what they would give one by one: the same random numbers, the same updates. The first steps run
/// as they are; then one is captured, for batches of its sizes. Batches of other sizes (the last of an epoch) and steps
/// that cannot be captured run as they are.
class StepGraph {
 public:
  /// Forward and backward of a batch; the loss is one number. It may draw from the default generator only.
  using Gradients = std::function<Tensor(const data::Batch&)>;
  /// What the gradients are used for: the step of `optimizer`, with the same options each time.
  using Update = std::function<void()>;

  /// `hindrance`: why steps are not to be captured, where the caller knows a reason.
  StepGraph(Device device, optim::Optimizer& optimizer, Gradients gradients, Update update, std::string hindrance = "");
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// One step: gradients and update. The loss stays as it is until the next call.
  Tensor operator()(const data::Batch& batch);

  /// Steps that were replayed so far.
  int64_t replayed() const { return replayed_; }
  /// Why steps are not captured; empty where they are, or may be yet.
  const std::string& hindrance() const { return hindrance_; }

 private:
  Tensor run(const data::Batch& batch);
  Tensor replay(const data::Batch& batch);
  void capture(const data::Batch& batch);
  bool fits(const data::Batch& batch) const;
  void let_go();

  Device device_;
  optim::Optimizer& optimizer_;
  Gradients gradients_;
  Update update_;
  std::string hindrance_;
  Stream stream_;         // its blocks are the graph's own
  Event before_, after_;  // of a step, in the current stream and in ours
  int64_t ran_ = 0, replayed_ = 0;
  std::optional<StepValues> values_;
  void* graph_ = nullptr;
  data::Batch batch_;  // what the captured step reads
  Tensor loss_;        // and what it writes
};

}  // namespace weft::train
