// Trains a network on MNIST digits and tests it: ./weft mnist
// Expect 99.0 % test accuracy or more after the default three epochs.
#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>
#include <cmath>

#include "apps/mnist/job.h"
#include "data/mnist.h"
#include "models/models.h"
#include "optim/optimizers.h"
#include "tensor/error.h"
#include "train/progress.h"

namespace {

using namespace weft;

/// Help in groups, each with an example below its name.
class Help : public CLI::Formatter {
 public:
  Help() { column_width(24); }
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: ./weft mnist [options]\n\n"; }
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    std::string text = fmt::format("{}\n", group);
    for (const CLI::Option* option : options) text += make_option(option, positional);
    return text;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : fmt::format(" {}", option->get_type_name());
  }
};

std::string group(const char* name, const char* example) { return fmt::format("{:<12}./weft mnist {}", name, example); }

template <class T>
std::string refuse_outside(const std::string& text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) return {};
  return fmt::format("wants a whole number from {} to {}, got '{}'", low, high, text);
}

template <class T>
CLI::Option* add_number(CLI::App& app, const char* name, T& value, T low, T high, const std::string& about) {
  return app.add_option(name, value, about)->type_name("N")->check([low, high](const std::string& text) {
    return refuse_outside(text, low, high);
  });
}

CLI::Option* add_path(CLI::App& app, const char* name, std::string& value, const char* kind, const char* about) {
  return app.add_option(name, value, about)->type_name(kind)->check([](const std::string& text) {
    return text.empty() || text.starts_with("--") ? fmt::format("wants a path, got '{}'", text) : std::string();
  });
}

std::string refuse_rate(const std::string& text) {
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error == std::errc{} && end == text.data() + text.size() && std::isfinite(rate) && rate > 0) return {};
  return fmt::format("wants a number above 0, got '{}'", text);
}

std::string refuse_precision(const std::string& text) {
  return text == "bf16" || text == "fp16" ? std::string() : fmt::format("wants bf16 or fp16, got '{}'", text);
}

mnist::Options parse(CLI::App& app, int argc, char** argv) {
  mnist::Options o;
  std::vector<std::string> models, optimizers, rates;
  for (const models::Entry& entry : models::table()) models.push_back(fmt::format("{}: {}", entry.name, entry.about));
  for (const optim::Entry& entry : optim::table()) {
    optimizers.emplace_back(entry.name);
    rates.push_back(fmt::format("{} {:g}", entry.name, entry.usual_lr));
  }
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

  const std::string data = group("Data", "--data ~/fashion-mnist");
  add_path(app, "--data", o.data, "FOLDER",
           "The four IDX files, plain or .gz, here or in its mnist/; where none is named:\n"
           "$WEFT_DATA, the cache, a download, and last Debian's dataset-fashion-mnist")
      ->group(data);
  add_number(app, "--workers", o.workers, 0, 64, fmt::format("Threads that prepare batches ahead [{}]", o.workers))
      ->group(data);

  const std::string model = group("Model", "--load digits.safetensors --eval-only");
  app.add_option("--model", o.model, fmt::format("The network [{}]\n{}", o.model, fmt::join(models, "\n")))
      ->type_name("NAME")
      ->group(model);
  add_path(app, "--load", o.load, "FILE", "Weights to start from (.safetensors)")->group(model);
  app.add_flag("--eval-only", o.eval_only, "Only test the weights of --load")->group(model)->needs("--load");

  const std::string training = group("Training", "--epochs 1 --batch 128 --optimizer sgd --lr 0.2");
  add_number<int64_t>(app, "--epochs", o.epochs, 0, 100'000,
                      fmt::format("Passes over the training images [{}]", o.epochs))
      ->group(training);
  add_number<int64_t>(app, "--batch", o.batch, 1, 60'000, fmt::format("Images a step [{}]", o.batch))->group(training);
  app.add_option("--optimizer", o.optimizer, fmt::format("{} [{}]", fmt::join(optimizers, ", "), o.optimizer))
      ->type_name("NAME")
      ->group(training);
  app.add_option("--lr", o.lr,
                 fmt::format("Highest learning rate of the one-cycle schedule\n[{}]", fmt::join(rates, ", ")))
      ->type_name("RATE")
      ->check(refuse_rate)
      ->group(training);
  app.add_option("--amp", o.amp,
                 "Mixed precision: bf16 or fp16 for convolutions and matrix products,\nweights and all else in f32")
      ->type_name("DTYPE")
      ->check(refuse_precision)
      ->group(training);
  add_number<uint64_t>(app, "--seed", o.seed, 0, UINT64_MAX,
                       fmt::format("Decides the first weights and the order of images [{}]", o.seed))
      ->group(training);

  const std::string machine = group("Machine", "--threads 4");
  app.add_option("--device", o.device, "cpu, cuda, cuda:N, or auto: a CUDA device where there is one [auto]")
      ->type_name("NAME")
      ->group(machine);
  app.add_flag("--tf32", o.tf32, "Lets a GPU round the factors of f32 products to 10 bits, for speed")->group(machine);
  app.add_flag("--cuda-graphs", o.cuda_graphs, "Captures a training step once and replays it as one launch")
      ->group(machine);
  add_number(app, "--threads", o.threads, 1, 4096, "Threads of the kernels [$OMP_NUM_THREADS, or one a core]")
      ->group(machine);
  app.add_flag("--no-flush-denormals", o.keep_denormals,
               "Compute with subnormal floats, not with 0 in their place; slower")
      ->group(machine);

  const std::string files = group("Files", "--save digits.safetensors --result figures.json");
  add_path(app, "--save", o.save, "FILE", "Writes the trained weights (.safetensors)")->group(files);
  add_path(app, "--result", o.result, "FILE", "Writes the final figures (JSON)")->group(files);
  app.set_help_flag("-h,--help", "Prints this")->group(files);
  app.parse(argc, argv);
  return o;
}

int complain(int code, const std::exception& error, const char* hint = "") {
  fmt::print(stderr, "mnist: {}{}\n", error.what(), hint);
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains a network on MNIST digits and tests it.", "mnist");
  app.formatter(std::make_shared<Help>());
  app.footer("Exit codes: 0 done, 2 a wrong option or input, 3 no data found, 1 anything else.");
  try {
    mnist::run(parse(app, argc, argv));
    return 0;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    return complain(2, error, " (--help lists the options)");
  } catch (const data::NoData& error) {
    return complain(3, error);
  } catch (const weft::Error& error) {
    return complain(2, error);
  } catch (const std::exception& error) {
    return complain(1, error);
  }
}
