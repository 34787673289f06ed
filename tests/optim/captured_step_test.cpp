// A step that is captured once and replayed with new values is the step that would have been taken.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "optim/adam.h"
#include "optim/clip.h"
#include "optim/sgd.h"
#include "tensor/backend.h"
#include "tensor/kernels.h"
#include "tensor/step_values.h"
#include "tensor/stream.h"
#include "tests/expect_error.h"
#include "tests/ops/op_case.h"
#include "tests/optim/parameters.h"

namespace weft {
namespace {

using namespace optim;

class CapturedStep : public ::testing::TestWithParam<Device> {};

/// Captures `step` at its first run, and replays it with what `host_part` says.
class Captured {
 public:
  explicit Captured(Device device) : backend_(backend(device.type)), stream_(current_stream(device)), values_(device) {}
  ~Captured() {
    if (graph_) backend_.destroy_graph(graph_);
  }
  void run(const std::function<void()>& step, const std::function<void()>& host_part) {
    if (graph_) {
      values_.refresh(host_part);
    } else {
      backend_.begin_capture(stream_.handle());
      values_.record(step);
      graph_ = backend_.end_capture(stream_.handle());
    }
    values_.write();
    backend_.launch_graph(graph_, stream_.handle());
  }

 private:
  const Backend& backend_;
  Stream stream_;
  StepValues values_;
  void* graph_ = nullptr;
};

/// Dropout and an optimizer over memory that stays, without a graph of autograd.
struct Training {
  std::vector<Named> parameters;
  Tensor x, dropped, mask;
  std::unique_ptr<Optimizer> optimizer;

  Training(Device device, bool adamw)
      : parameters(testing::parameters({{37}, {5, 3}}, f32, device)),
        x(testing::values({37}, f32, 1, 1).to(device)),
        dropped(empty_like(x)),
        mask(empty_like(x, boolean)) {
    testing::set_gradients(parameters, 1);
    if (adamw)
      optimizer = std::make_unique<AdamW>(parameters, AdamWOptions{.lr = 0.1});
    else
      optimizer = std::make_unique<SGD>(parameters, SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  }

  void draw() {
    kernels::dropout(x, 0.4, default_generator().take(x.numel()), dropped, mask);
    Tensor grad = parameters[0].value.grad();
    kernels::mul(dropped, parameters[0].value, grad);
    kernels::dropout(grad, 0.2, default_generator().take(x.numel()), grad, mask);
  }
  void schedule(int t) { optimizer->set_lr(0.1 / t); }
  void step() {
    draw();
    optimizer->step();
  }
};

TEST_P(CapturedStep, IsTheEagerStep) {
  for (const bool adamw : {true, false}) {
    Training eager(GetParam(), adamw), graph(GetParam(), adamw);
    manual_seed(7);
    for (int t = 1; t <= 6; ++t) {
      eager.schedule(t);
      eager.step();
    }
    const Philox after = default_generator().state();

    manual_seed(7);
    Captured captured(GetParam());
    for (int t = 1; t <= 6; ++t) {
      graph.schedule(t);
      if (t == 1)
        graph.step();  // makes the state
      else
        captured.run([&] { graph.step(); }, [&] { graph.optimizer->step(); });
    }
    EXPECT_EQ(default_generator().state().offset, after.offset);
    EXPECT_EQ(graph.mask.to_vector<double>(), eager.mask.to_vector<double>());
    EXPECT_EQ(testing::flat(graph.parameters), testing::flat(eager.parameters));
    EXPECT_EQ(testing::flat(graph.optimizer->state_dict()), testing::flat(eager.optimizer->state_dict()));
  }
}

/// Another seed between two steps is another stream of draws, as in an eager run.
TEST_P(CapturedStep, FollowsANewSeed) {
  Training graph(GetParam(), true);
  graph.step();
  Captured captured(GetParam());
  for (int t = 0; t < 2; ++t) captured.run([&] { graph.step(); }, [&] { graph.optimizer->step(); });
  manual_seed(99);
  captured.run([&] { graph.step(); }, [&] { graph.optimizer->step(); });
  const std::vector<double> mask = graph.mask.to_vector<double>();
  manual_seed(99);
  graph.draw();
  EXPECT_EQ(graph.mask.to_vector<double>(), mask);
}

TEST_P(CapturedStep, RefusesWhatItCannotReplay) {
  Training t(GetParam(), true);
  const Backend& runtime = backend(GetParam().type);
  const Stream stream = current_stream(GetParam());
  StepValues values(GetParam());
  EXPECT_ERROR(values.record([&] { t.optimizer->step(); }), "the first makes the optimizer's state");

  t.step();
  Generator other(5);
  EXPECT_ERROR(values.record([&] { kernels::dropout(t.x, 0.4, other.take(37), t.dropped, t.mask); }),
               "draws from the default generator only, not from one with seed 5");
  EXPECT_ERROR(values.record([&] { manual_seed(3); }), "seeded anew");
  EXPECT_ERROR(values.record([&] { values.record([] {}); }), "recorded or refreshed already");

  runtime.begin_capture(stream.handle());
  values.record([&] { t.step(); });
  void* graph = runtime.end_capture(stream.handle());
  const std::vector<double> before = testing::flat(t.parameters);
  EXPECT_ERROR(values.refresh([] {}), "had 1 changing arguments, this one has 0");
  EXPECT_ERROR(values.refresh([&] { t.optimizer->step(), t.optimizer->step(); }), "is not as in the captured step");
  EXPECT_EQ(testing::flat(t.parameters), before) << "a refresh launched kernels";
  runtime.destroy_graph(graph);
}

#if !defined(__SANITIZE_ADDRESS__)  // there memory that the captured step gave back is gone
TEST_P(CapturedStep, HoldsForwardBackwardAndClipping) {
  std::vector<Named> a = testing::parameters({{23}}, f32, GetParam()), b = testing::parameters({{23}}, f32, GetParam());
  const Tensor x = testing::values({23}, f32, 3, 3).to(GetParam()), dy = full({23}, 0.7).to(GetParam());
  AdamW eager(a, {.lr = 0.05}), graph(b, {.lr = 0.05});
  Tensor norm;
  const auto step = [&](std::vector<Named>& p, AdamW& adamw) {
    adamw.zero_grad();
    dropout(relu(p[0].value * x), 0.3, true).backward({.gradient = dy});
    norm = clip_grad_norm_async(p, 0.5);
    adamw.step();
  };
  manual_seed(1);
  for (int t = 0; t < 5; ++t) step(a, eager);
  const double last = norm.item();
  manual_seed(1);
  step(b, graph);
  Captured captured(GetParam());
  for (int t = 0; t < 4; ++t) captured.run([&] { step(b, graph); }, [&] { graph.step(); });
  EXPECT_EQ(norm.item(), last);
  EXPECT_EQ(testing::flat(a), testing::flat(b));
}
#endif

/// The CPU's work is not captured.
std::vector<Device> devices() {
  if (testing::test_device() == cpu) return {};
  return {testing::test_device()};
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CapturedStep);
INSTANTIATE_TEST_SUITE_P(Device, CapturedStep, ::testing::ValuesIn(devices()));

}  // namespace
}  // namespace weft
