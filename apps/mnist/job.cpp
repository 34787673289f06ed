// The MNIST job: data, model, training loop, results.
#include "apps/mnist/job.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "data/loader.h"
#include "data/mnist.h"
#include "models/models.h"
#include "nn/loss.h"
#include "optim/loss_scaler.h"
#include "optim/optimizers.h"
#include "optim/schedule.h"
#include "tensor/atomic_file.h"
#include "tensor/precision.h"
#include "tensor/random.h"
#include "tensor/safetensors.h"
#include "tensor/threads.h"
#include "train/device.h"
#include "train/evaluate.h"
#include "train/loss_mean.h"
#include "train/progress.h"
#include "train/step_graph.h"

namespace weft::mnist {
namespace {

namespace fs = std::filesystem;
using train::with_commas;

/// A run of minutes must not end with a result that cannot be written.
void check_writable(const char* option, const std::string& path) {
  if (path.empty()) return;
  const fs::path folder = fs::absolute(path).parent_path();
  WEFT_CHECK(fs::is_directory(folder), option, "the folder {} does not exist", folder.string());
  WEFT_CHECK(!fs::is_directory(path), option, "{} is a folder, not a file", path);
  AtomicFile probe(path);  // not committed, so nothing changes
}

void check_outputs(const Options& o) {
  WEFT_CHECK(o.save.empty() || o.result.empty() || fs::weakly_canonical(o.save) != fs::weakly_canonical(o.result),
             "--save", "--save and --result name the same file, {}", o.save);
  check_writable("--save", o.save);
  check_writable("--result", o.result);
}

data::Split read_data(const std::string& folder, const Shape& wanted) {
  data::Split data = data::mnist(folder);
  const Shape& sizes = data.train.images().sizes();
  WEFT_CHECK(Shape({sizes[1], sizes[2], sizes[3]}) == wanted, "--data",
             "{} has images of {} × {}, the model wants {} × {}", folder, sizes[2], sizes[3], wanted[1], wanted[2]);
  return data;
}

/// "mnist", or the name of the set that is in its place: the last part of a folder such as …/fashion-mnist.
std::string data_name(const std::string& folder) {
  const std::string name = fs::path(folder).filename().string();
  return name.ends_with("mnist") ? name : "mnist";
}

int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// What a run has reached, for the last line and the result file.
struct Outcome {
  train::Scores test;
  double train_loss = std::nan("");
  int64_t steps = 0, skipped_steps = 0, samples = 0;
  std::string steps_not_captured;  // why, where --cuda-graphs asked for them
  double training_seconds = 0;     // without evaluation
  double seconds = 0;
};

/// Tests the model, in the precision that it trains in; weights that have become NaN or infinite are an error, not a
/// result.
train::Scores test(nn::Module& model, const data::Split& data, Device device, DType products, const char* advice) {
  const Autocast autocast(products);
  const train::Scores scores = train::evaluate(model, data.test, device);
  WEFT_CHECK(std::isfinite(scores.loss), "mnist", "the loss on the test images is {}; {}", scores.loss, advice);
  return scores;
}

void train_epochs(const Options& o, double lr, nn::Module& model, const data::Split& data, Device device, Outcome& r) {
  constexpr const char* kAdvice = "the training diverges, try a lower --lr";
  constexpr int64_t kReadEvery = 50;  // steps between waits for a device
  const auto optimizer = optim::find(o.optimizer).make(model.parameters());
  const DType products = train::amp_dtype(o.amp);
  optim::LossScaler scaler({.enabled = products == f16});
  data::Loader loader(data.train,
                      {.batch = o.batch, .shuffle = true, .workers = o.workers, .seed = o.seed, .device = device});
  optim::Scheduler schedule(*optimizer, optim::schedule::one_cycle(lr, {.steps = o.epochs * loader.batches()}));
  const auto gradients = [&](const data::Batch& batch) {
    optimizer->zero_grad();
    Tensor loss;
    {
      const Autocast autocast(products);
      loss = nn::cross_entropy(model(batch.x), batch.y);
    }
    scaler.scale(loss).backward();
    return loss;
  };
  train::StepGraph train_step(
      device, *optimizer, gradients, [&] { scaler.step(*optimizer); },
      !o.cuda_graphs     ? "not asked for"
      : scaler.enabled() ? "loss scaling reads the gradients' norm back at each step"
                         : "");
  train::Progress progress(stdout, o.epochs);
  for (int64_t epoch = 1; epoch <= o.epochs; ++epoch) {
    const FlushDenormals flush;
    progress.begin_epoch(epoch, loader.batches());
    train::LossMean epoch_loss(device);
    int64_t step = 0;
    for (auto [x, y] : loader) {
      const Tensor loss = train_step({x, y});
      schedule.step();
      epoch_loss.add(loss, y.numel());
      if (++step % kReadEvery == 1 || step == loader.batches()) epoch_loss.read();
      WEFT_CHECK(std::isfinite(epoch_loss.value()), "mnist", "the loss has become {} by step {} of epoch {}; {}",
                 epoch_loss.value(), step, epoch, kAdvice);
      progress.step(step, y.numel(), epoch_loss.value());
    }
    r.steps += step;
    r.samples += epoch_loss.count();
    r.training_seconds += progress.training_seconds();
    r.train_loss = epoch_loss.value();
    r.skipped_steps = scaler.skipped();
    if (o.cuda_graphs) r.steps_not_captured = train_step.hindrance();
    r.test = test(model, data, device, products, kAdvice);
    progress.end_epoch(r.train_loss, fmt::format("test {:.2f} %", r.test.accuracy));
  }
}

void write_result(const Options& o, const Outcome& r) {
  const nlohmann::json result = {
      // NaN, of a run without training, is written as null
      {"test_accuracy", r.test.accuracy},
      {"test_loss", r.test.loss},
      {"train_loss", r.train_loss},
      {"epochs", o.epochs},
      {"steps", r.steps},
      {"seconds", r.seconds},
      {"samples_per_second", static_cast<double>(r.samples) / r.training_seconds},
      {"peak_memory_bytes", peak_memory()},
      {"seed", o.seed},
  };
  AtomicFile file(o.result);
  file.write(result.dump(2) + "\n");
  file.commit();
}

}  // namespace

void run(const Options& options) {
  Options o = options;
  if (o.eval_only) o.epochs = 0;
  if (o.threads > 0) set_num_threads(o.threads);
  set_flush_denormals(!o.keep_denormals);
  allow_tf32(o.tf32);
  manual_seed(o.seed);
  const Device device = train::device_for(o.device);
  const models::Entry& entry = models::find(o.model);
  const double lr = o.lr > 0 ? o.lr : optim::find(o.optimizer).usual_lr;
  check_outputs(o);
  const std::unique_ptr<nn::Module> model = entry.make();
  if (!o.load.empty()) model->load_state_dict(load(o.load));
  model->to(device);
  const std::string folder = data::find_mnist(o.data);
  const data::Split data = read_data(folder, entry.input);

  fmt::print("{}   {} train, {} test images   {} parameters   {}", data_name(folder), with_commas(data.train.size()),
             with_commas(data.test.size()), with_commas(model->parameter_count()), train::describe(device));
  if (!o.amp.empty()) fmt::print("   amp {}", o.amp);
  if (o.epochs > 0) fmt::print("   batch {}   {}, one-cycle {:g}   seed {}", o.batch, o.optimizer, lr, o.seed);
  fmt::print("\n");
  std::fflush(stdout);

  Outcome outcome;
  const auto started = std::chrono::steady_clock::now();
  if (o.epochs > 0)
    train_epochs(o, lr, *model, data, device, outcome);
  else
    outcome.test =
        test(*model, data, device, train::amp_dtype(o.amp), "the weights hold values that are too large or not finite");
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!o.save.empty()) save(o.save, model->state_dict());
  if (!o.result.empty()) write_result(o, outcome);
  const std::string skipped =
      outcome.skipped_steps == 0
          ? ""
          : fmt::format("   {} of {} steps skipped", with_commas(outcome.skipped_steps), with_commas(outcome.steps));
  if (!outcome.steps_not_captured.empty()) fmt::print("no CUDA graph: {}\n", outcome.steps_not_captured);
  fmt::print("test accuracy {:.2f} %   {}   peak memory {} MB{}{}\n", outcome.test.accuracy,
             train::clock_time(outcome.seconds), with_commas(peak_memory() / 1'000'000), skipped,
             o.save.empty() ? "" : "   weights " + o.save);
}

}  // namespace weft::mnist
