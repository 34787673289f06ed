// The MNIST job: data, model, training loop, results.
#include "apps/mnist/job.h"

#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "autograd/autograd.h"
#include "data/loader.h"
#include "data/mnist.h"
#include "models/models.h"
#include "nn/loss.h"
#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
#include "tensor/atomic_file.h"
#include "tensor/random.h"
#include "tensor/safetensors.h"
#include "tensor/threads.h"
#include "train/evaluate.h"
#include "train/metrics.h"
#include "train/progress.h"

namespace weft::mnist {
namespace {

using train::with_commas;

struct OptimizerEntry {
  const char* name;
  double usual_lr;  ///< highest rate of the one-cycle schedule
  std::unique_ptr<optim::Optimizer> (*make)(std::vector<Named> parameters);
};

template <class Optimizer>
std::unique_ptr<optim::Optimizer> make(std::vector<Named> parameters) {
  return std::make_unique<Optimizer>(std::move(parameters));
}

const OptimizerEntry kOptimizers[] = {
    {"sgd", 0.1,
     [](std::vector<Named> p) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::SGD>(std::move(p), optim::SgdOptions{.momentum = 0.9});
     }},
    {"adam", 2e-3, make<optim::Adam>},
    {"adamw", 2e-3, make<optim::AdamW>},
    {"rmsprop", 1e-3, make<optim::RMSprop>},
    {"adagrad", 1e-2, make<optim::Adagrad>},
    {"adadelta", 1.0, make<optim::Adadelta>},
};

const OptimizerEntry& optimizer_entry(const std::string& name) {
  std::string names;
  for (const OptimizerEntry& entry : kOptimizers) {
    if (name == entry.name) return entry;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  }
  fail("optimizer", fmt::format("no optimizer is called '{}'; there are {}", name, names));
}

/// A run of minutes must not end with a result that cannot be written.
void check_writable(const char* option, const std::string& path) {
  if (path.empty()) return;
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  WEFT_CHECK(std::filesystem::is_directory(folder), option, "the folder {} does not exist", folder.string());
  WEFT_CHECK(!std::filesystem::is_directory(path), option, "{} is a folder, not a file", path);
  AtomicFile probe(path);  // not committed, so nothing changes
}

int64_t peak_process_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// What a run has reached, for the last line and the result file.
struct Outcome {
  train::Scores test;
  double train_loss = std::nan("");
  int64_t steps = 0, samples = 0;
  double seconds = 0;           // of training and evaluation
  double training_seconds = 0;  // of training alone
};

void write_result(const Options& o, const Outcome& r) {
  if (o.result.empty()) return;
  const auto number = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(); };
  const nlohmann::json result = {
      {"test_accuracy", number(r.test.accuracy)},
      {"test_loss", number(r.test.loss)},
      {"train_loss", number(r.train_loss)},
      {"epochs", o.eval_only ? 0 : o.epochs},
      {"steps", r.steps},
      {"seconds", r.seconds},
      {"samples_per_second",
       r.training_seconds > 0 ? number(static_cast<double>(r.samples) / r.training_seconds) : nlohmann::json()},
      {"peak_memory_bytes", peak_process_memory()},
      {"seed", o.seed},
  };
  AtomicFile file(o.result);
  file.write(result.dump(2) + "\n");
  file.commit();
}

void print_end(const Options& o, const Outcome& r) {
  fmt::print("test accuracy {:.2f} %   {}   peak memory {} MB{}\n", r.test.accuracy, train::clock_time(r.seconds),
             with_commas(peak_process_memory() / 1'000'000), o.save.empty() ? "" : "   weights " + o.save);
}

void train_epochs(const Options& o, nn::Module& model, const data::Split& data, Device device, Outcome& r) {
  const auto started = std::chrono::steady_clock::now();
  const OptimizerEntry& entry = optimizer_entry(o.optimizer);
  const std::unique_ptr<optim::Optimizer> optimizer = entry.make(model.parameters());
  data::Loader loader(data.train, {.batch = o.batch, .shuffle = true, .workers = o.workers, .seed = o.seed});
  const double lr = o.lr > 0 ? o.lr : entry.usual_lr;
  optim::Scheduler schedule(
      *optimizer, optim::schedule::one_cycle(lr, {.steps = std::max<int64_t>(1, o.epochs * loader.batches())}));
  train::Progress progress(stdout, o.epochs);
  for (int64_t epoch = 1; epoch <= o.epochs; ++epoch) {
    const FlushDenormals flush;
    progress.begin_epoch(epoch, loader.batches());
    train::Mean loss_mean;
    int64_t step = 0;
    for (auto [x, y] : loader) {
      optimizer->zero_grad();
      const Tensor loss = nn::cross_entropy(model(x.to(device)), y.to(device));
      loss.backward();
      optimizer->step();
      schedule.step();
      const double value = loss.item();
      WEFT_CHECK(std::isfinite(value), "mnist", "the loss is {} at step {} of epoch {}; try a lower --lr", value,
                 step + 1, epoch);
      loss_mean.add(value, y.numel());
      progress.step(++step, y.numel(), loss_mean.value());
    }
    r.steps += step;
    r.samples += loss_mean.count();
    r.training_seconds += static_cast<double>(loss_mean.count()) / progress.samples_per_second();
    r.train_loss = loss_mean.value();
    r.test = train::evaluate(model, data.test, device);
    progress.end_epoch(r.train_loss, fmt::format("test {:.2f} %", r.test.accuracy));
  }
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
}

}  // namespace

void run(const Options& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  set_flush_denormals(!o.keep_denormals);
  manual_seed(o.seed);
  const Device device = device_from(o.device);
  const OptimizerEntry& optimizer = optimizer_entry(o.optimizer);
  check_writable("--save", o.save);
  check_writable("--result", o.result);
  const std::unique_ptr<nn::Module> model = models::make(o.model);
  if (!o.load.empty()) model->load_state_dict(load(o.load));
  model->to(device);
  const data::Split data = data::mnist(data::find_mnist(o.data));

  fmt::print("mnist   {} train, {} test images   {} parameters   {}, {} thread{}", with_commas(data.train.size()),
             with_commas(data.test.size()), with_commas(model->parameter_count()), name(device), num_threads(),
             num_threads() == 1 ? "" : "s");
  if (!o.eval_only)
    fmt::print("   batch {}   {}, one-cycle {:g}   seed {}", o.batch, o.optimizer, o.lr > 0 ? o.lr : optimizer.usual_lr,
               o.seed);
  fmt::print("\n");

  Outcome outcome;
  if (o.eval_only || o.epochs == 0)
    outcome.test = train::evaluate(*model, data.test, device);
  else
    train_epochs(o, *model, data, device, outcome);
  if (!o.save.empty()) save(o.save, model->state_dict());
  write_result(o, outcome);
  print_end(o, outcome);
}

}  // namespace weft::mnist
