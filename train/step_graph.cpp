// Memory of a captured step comes from the blocks of its own stream, which nobody else is given while the graph lives.
#include "train/step_graph.h"

#include <utility>

#include "tensor/backend.h"
#include "tensor/kernels.h"
#include "tensor/random.h"

namespace weft::train {
namespace {

/// Steps that run as they are before one is captured: they make the optimizer's state and choose the libraries' plans.
constexpr int64_t kWarmUp = 2;

}  // namespace

StepGraph::StepGraph(Device device, optim::Optimizer& optimizer, Gradients gradients, Update update,
                     std::string hindrance)
    : device_(device),
      optimizer_(optimizer),
      gradients_(std::move(gradients)),
      update_(std::move(update)),
      hindrance_(std::move(hindrance)),
      stream_(device),
      before_(device),
      after_(device) {
  if (device_ == cpu && hindrance_.empty()) hindrance_ = "the CPU has no graphs";
  if (hindrance_.empty()) memory::keep_cache(stream_, true);
}

StepGraph::~StepGraph() { let_go(); }

/// Gives back what a graph has: itself, and the memory that was kept for it.
void StepGraph::let_go() {
  if (device_ == cpu) return;
  stream_.wait();
  if (graph_) backend_in_use(device_).destroy_graph(std::exchange(graph_, nullptr));
  values_.reset();
  batch_ = {};
  loss_ = {};
  memory::keep_cache(stream_, false);
}

Tensor StepGraph::operator()(const data::Batch& batch) {
  if (!hindrance_.empty() || (graph_ && !fits(batch))) return run(batch);
  // The step's stream goes on where the current one is, and the current one behind the step.
  const Stream current = current_stream(device_);
  before_.record(current);
  before_.wait(stream_);
  Tensor loss;
  {
    const StreamGuard guard(stream_);
    if (graph_)
      values_->refresh(update_);
    else if (ran_++ >= kWarmUp)
      capture(batch);
    loss = graph_ ? replay(batch) : run(batch);
    after_.record(stream_);
  }
  after_.wait(current);
  return loss;
}

Tensor StepGraph::run(const data::Batch& batch) {
  const Tensor loss = gradients_(batch);
  update_();
  return loss;
}

Tensor StepGraph::replay(const data::Batch& batch) {
  kernels::copy(batch.x, batch_.x);
  kernels::copy(batch.y, batch_.y);
  values_->write();
  backend(device_.type).launch_graph(graph_, stream_.handle());
  ++replayed_;
  return loss_;
}

bool StepGraph::fits(const data::Batch& batch) const {
  return batch.x.sizes() == batch_.x.sizes() && batch.y.sizes() == batch_.y.sizes() &&
         batch.x.dtype() == batch_.x.dtype() && batch.y.dtype() == batch_.y.dtype();
}

/// Leaves `graph_` null, with the reason, where the step cannot be captured: then nothing has changed but the
/// gradients, which are dropped.
void StepGraph::capture(const data::Batch& batch) {
  const Philox draws = default_generator().state();
  const std::vector<Named> state = optimizer_.state_dict();  // its tensors stay as they are: nothing runs in a capture
  const auto undo = [&] {
    let_go();
    optimizer_.zero_grad();
    default_generator().set_state(draws);
    optimizer_.load_state_dict(state);
  };
  const Backend& runtime = backend(device_.type);
  batch_ = {empty_like(batch.x), empty_like(batch.y)};
  values_.emplace(device_);
  try {
    runtime.begin_capture(stream_.handle());
    try {
      values_->record([this] {
        loss_ = gradients_(batch_);
        update_();
      });
    } catch (...) {
      runtime.abandon_capture(stream_.handle());
      throw;
    }
    graph_ = runtime.end_capture(stream_.handle());
  } catch (const Error& error) {
    hindrance_ = error.what();
    undo();
  } catch (...) {
    undo();
    throw;
  }
}

}  // namespace weft::train
