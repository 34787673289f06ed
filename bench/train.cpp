// The speed of training jobs, with the apps' loader and step; one JSON line with the same fields as
// bench/peers/mnist_torch.py and texts_torch.py. `samples_per_second` is the median over blocks of steps, after the
// warm-up.
//   train [--job mnist|cnn|lstm|transformer] [--device cuda] [--cuda-graphs] [--amp bf16|fp16] [--threads N] [--steps
//   N]
//         [--block N] [--warmup N] [--batch N] [--length N] [--sparse-embeddings] [--data FOLDER]
#include <sys/resource.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "data/loader.h"
#include "data/mnist.h"
#include "models/mnist.h"
#include "models/texts.h"
#include "optim/adam.h"
#include "optim/loss_scaler.h"
#include "tensor/random.h"
#include "tensor/stream.h"
#include "tensor/threads.h"
#include "train/device.h"
#include "train/step_graph.h"
#include "train/task.h"

namespace {

using namespace weft;

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

/// Noise of MNIST's shape, for machines without the data.
data::ImageDataset noise() {
  const Tensor images = randint(0, 256, {60000 * 28 * 28}).to(u8).reshape({60000, 28, 28});
  return {images, randint(0, 10, {60000}).to(u8), {.mean = 0.1307f, .deviation = 0.3081f}};
}

/// What is trained.
struct Job {
  std::unique_ptr<nn::Module> model;
  std::unique_ptr<data::Dataset> data;
  train::Task task;
};

/// Texts of random ids, all of one length.
Job text_job(const std::string& name, int64_t length, bool sparse) {
  constexpr int64_t kTexts = 6400, kVocabulary = 20000;
  return {
      models::texts::find(name).make({.vocabulary = kVocabulary, .max_length = length, .sparse_embeddings = sparse}),
      std::make_unique<data::TensorDataset>(randint(1, kVocabulary, {kTexts, length}).to(i32),
                                            randint(0, 2, {kTexts}).to(f32)),
      train::binary_classification};
}

Job mnist_job(const std::string& folder) {
  return {std::make_unique<models::MnistNet>(),
          std::make_unique<data::ImageDataset>(folder.empty() ? noise() : data::mnist(folder).train),
          train::classification};
}

}  // namespace

int main(int argc, char** argv) try {
  int threads = 2;
  int64_t steps = 200, block = 20, warmup = 20, batch = 64;
  int64_t length = 400;
  std::string name = "mnist", folder, device_name = "cpu", amp;
  bool graphs = false, sparse = false;
  CLI::App app("Measures training jobs.", "train");
  app.option_defaults()->always_capture_default();
  app.add_option("--job", name)->check(CLI::IsMember({"mnist", "cnn", "lstm", "transformer"}));
  app.add_option("--length", length, "ids of a text")->check(CLI::Range(int64_t{8}, int64_t{100000}));
  app.add_flag("--sparse-embeddings", sparse, "row gradients of the words' table");
  app.add_option("--threads", threads)->check(CLI::Range(1, 4096));
  app.add_option("--steps", steps, "measured steps")->check(CLI::PositiveNumber);
  app.add_option("--block", block, "steps of one time measurement")->check(CLI::PositiveNumber);
  app.add_option("--warmup", warmup, "steps before the measurement")->check(CLI::NonNegativeNumber);
  app.add_option("--batch", batch)->check(CLI::Range(int64_t{1}, int64_t{60000}));
  app.add_option("--device", device_name, "cpu, cuda or auto");
  app.add_flag("--cuda-graphs", graphs, "replays a captured step");
  app.add_option("--amp", amp, "mixed precision")->check(CLI::IsMember({"bf16", "fp16"}));
  app.add_option("--data", folder, "folder of the IDX files; noise of the same shape where it is left out");
  CLI11_PARSE(app, argc, argv);

  set_num_threads(threads);
  manual_seed(0);
  const Job job = name == "mnist" ? mnist_job(folder) : text_job(name, length, sparse);
  const Device device = train::device_for(device_name);
  const DType products = train::amp_dtype(amp);
  nn::Module& net = *job.model;
  net.to(device);
  optim::AdamW adam(net.parameters(), {.lr = 1e-3});
  optim::LossScaler scaler({.enabled = products == f16});
  const FlushDenormals flush;
  const auto gradients = [&](const data::Batch& b) {
    adam.zero_grad();
    Tensor loss;
    {
      const Autocast autocast(products);
      loss = job.task.loss(net(b.x), b.y);
    }
    scaler.scale(loss).backward();
    return loss;
  };
  train::StepGraph train_step(
      device, adam, gradients, [&] { scaler.step(adam); }, graphs ? "" : "not asked for");
  data::Loader loader(*job.data, {.batch = batch, .drop_last = true, .device = device});
  auto batches = loader.begin();
  Tensor loss;
  auto run_step = [&] {
    const auto [x, y] = *batches;
    loss = train_step({x, y});
    if (++batches == loader.end()) batches = loader.begin();
  };
  for (int64_t i = 0; i < warmup; ++i) run_step();
  synchronize(device);
  std::vector<double> rates;
  const double cpu_start = cpu_seconds();
  int64_t done = 0;
  for (; done < steps; done += block) {
    const double start = wall_seconds();
    for (int64_t i = 0; i < block; ++i) run_step();
    synchronize(device);
    rates.push_back(static_cast<double>(block * batch) / (wall_seconds() - start));
  }
  std::sort(rates.begin(), rates.end());
  fmt::print("{}\n",
             nlohmann::ordered_json{{"who", "weft"},
                                    {"job", name},
                                    {"samples_per_second", rates[rates.size() / 2]},
                                    {"min", rates.front()},
                                    {"max", rates.back()},
                                    {"cpu_ms_per_step", (cpu_seconds() - cpu_start) / static_cast<double>(done) * 1e3},
                                    {"peak_memory_bytes", peak_memory()},
                                    {"last_loss", loss.item()},
                                    {"device", train::describe(device)},
                                    {"amp", amp},
                                    {"replayed_steps", train_step.replayed()},
                                    {"batch", batch},
                                    {"threads", threads}}
                 .dump());
} catch (const weft::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
