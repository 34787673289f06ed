// Settings of the process, results and files.
#include "apps/common/run.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "autograd/autocast.h"
#include "optim/optimizers.h"
#include "tensor/atomic_file.h"
#include "tensor/precision.h"
#include "tensor/random.h"
#include "tensor/threads.h"
#include "train/device.h"
#include "train/progress.h"

namespace weft::apps {
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

int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

}  // namespace

Device set_up(const Options& o) {
  if (o.threads > 0) set_num_threads(o.threads);
  set_flush_denormals(!o.keep_denormals);
  allow_tf32(o.tf32);
  manual_seed(o.seed);
  check_outputs(o);
  return train::device_for(o.device);
}

train::FitOptions fit_options(const Options& o, Device device) {
  return {.epochs = o.epochs,
          .batch = o.batch,
          .workers = o.workers,
          .seed = o.seed,
          .device = device,
          .amp = train::amp_dtype(o.amp),
          .cuda_graphs = o.cuda_graphs};
}

train::Scores test(const Options& o, nn::Module& model, const train::Task& task, const data::Dataset& dataset,
                   Device device, const char* what) {
  const Autocast autocast(train::amp_dtype(o.amp));
  const train::Scores scores = train::evaluate(model, task, dataset, device);
  WEFT_CHECK(std::isfinite(scores.loss), "test", "the loss on the {} is {}; {}", what, scores.loss,
             o.epochs > 0 ? "the training diverges, try a lower --lr"
                          : "the weights hold values that are too large or not finite");
  return scores;
}

std::string describe(const Options& o, Device device, const std::string& training) {
  std::string text = train::describe(device);
  if (!o.amp.empty()) text += fmt::format("   amp {}", o.amp);
  if (o.epochs > 0) text += fmt::format("   batch {}   {}   seed {}", o.batch, training, o.seed);
  return text;
}

void finish(const Options& o, const Outcome& r, const nlohmann::ordered_json& more) {
  if (!o.result.empty()) {
    nlohmann::ordered_json result = {
        // NaN, of a run without training, is written as null
        {"test_accuracy", r.test.accuracy},
        {"test_loss", r.test.loss},
        {"train_loss", r.fitted.train_loss},
        {"epochs", o.epochs},
        {"steps", r.fitted.steps},
        {"seconds", r.seconds},
        {"samples_per_second", static_cast<double>(r.fitted.samples) / r.fitted.training_seconds},
        {"peak_memory_bytes", peak_memory()},
        {"seed", o.seed},
    };
    if (!more.is_null()) result.update(more);
    AtomicFile file(o.result);
    file.write(result.dump(2) + "\n");
    file.commit();
  }
  const train::Fitted& f = r.fitted;
  if (!f.steps_not_captured.empty()) fmt::print("no CUDA graph: {}\n", f.steps_not_captured);
  fmt::print("test accuracy {:.2f} %   {}   peak memory {} MB{}{}\n", r.test.accuracy, train::clock_time(r.seconds),
             with_commas(peak_memory() / 1'000'000),
             f.skipped_steps == 0
                 ? ""
                 : fmt::format("   {} of {} steps skipped", with_commas(f.skipped_steps), with_commas(f.steps)),
             o.save.empty() ? "" : "   weights " + o.save);
}

}  // namespace weft::apps
