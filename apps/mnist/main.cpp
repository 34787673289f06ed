// Trains a network on MNIST digits and tests it: ./weft mnist
// Expect 99.0 % test accuracy or more after the default three epochs.
#include <fmt/core.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "apps/mnist/job.h"
#include "tensor/error.h"

namespace {

weft::mnist::Options parse(CLI::App& app, int argc, char** argv) {
  weft::mnist::Options o;
  app.description(
      "Trains a network on MNIST digits and tests it.\n"
      "Example: ./weft mnist --epochs 1 --save digits.safetensors");
  app.option_defaults()->always_capture_default();
  const char* data = "Data";
  app.add_option("--data", o.data,
                 "Folder of the four IDX files; where none is given: $WEFT_DATA, the cache, a download")
      ->group(data);
  app.add_option("--workers", o.workers, "Threads that prepare batches ahead")->group(data)->check(CLI::Range(0, 64));

  const char* model = "Model";
  app.add_option("--model", o.model, "mnist, lenet5 or mlp")->group(model);
  app.add_option("--load", o.load, "Weights to start from (.safetensors)")->group(model);

  const char* training = "Training";
  app.add_option("--epochs", o.epochs, "Passes over the training images")
      ->group(training)
      ->check(CLI::Range(int64_t{0}, int64_t{100000}));
  app.add_option("--batch", o.batch, "Images a step")->group(training)->check(CLI::Range(int64_t{1}, int64_t{60000}));
  app.add_option("--optimizer", o.optimizer, "sgd, adam, adamw, rmsprop, adagrad or adadelta")->group(training);
  app.add_option("--lr", o.lr, "Highest learning rate of the one-cycle schedule; 0: the optimizer's usual one")
      ->group(training)
      ->check(CLI::NonNegativeNumber);
  app.add_option("--seed", o.seed, "Decides the first weights and the order of images")->group(training);
  app.add_flag("--eval-only", o.eval_only, "Only test, with the weights of --load")->group(training)->needs("--load");

  const char* machine = "Machine";
  app.add_option("--device", o.device, "cpu")->group(machine);
  app.add_option("--threads", o.threads, "Threads of the kernels; 0: $OMP_NUM_THREADS, or one a core")
      ->group(machine)
      ->check(CLI::Range(0, 4096));
  app.add_flag("--no-flush-denormals", o.keep_denormals,
               "Compute with subnormal floats instead of taking them as 0; slower")
      ->group(machine);

  const char* files = "Files";
  app.add_option("--save", o.save, "Where to write the trained weights (.safetensors)")->group(files);
  app.add_option("--result", o.result, "Where to write the final figures (JSON)")->group(files);
  app.parse(argc, argv);
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("", "mnist");
  try {
    weft::mnist::run(parse(app, argc, argv));
    return 0;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "mnist: {} (--help lists the options)\n", error.what());
    return 2;
  } catch (const weft::Error& error) {
    fmt::print(stderr, "mnist: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "mnist: {}\n", error.what());
    return 1;
  }
}
