// Trains a network on MNIST digits and tests it: ./weft mnist
// Expect 99.0 % test accuracy or more after the default three epochs.
#include <fmt/ranges.h>

#include "apps/common/command_line.h"
#include "apps/mnist/job.h"
#include "models/models.h"

int main(int argc, char** argv) {
  using namespace weft;
  const apps::Words words{
      .program = "mnist",
      .samples = "images",
      .data =
          "The four IDX files, plain or .gz, here or in its mnist/; where none is named:\n"
          "$WEFT_DATA, the cache, a download, and last Debian's dataset-fashion-mnist",
      .data_example = "--data ~/fashion-mnist",
      .model_example = "--load digits.safetensors --eval-only",
      .train_example = "--epochs 1 --batch 128 --optimizer sgd --lr 0.2",
      .files_example = "--save digits.safetensors --result figures.json",
      .rate = "Highest learning rate of the one-cycle schedule",
      .most_batch = 60'000,
  };
  mnist::Options options;
  CLI::App app("Trains a network on MNIST digits and tests it.", "mnist");
  apps::add_options(app, options, words, [&](const std::string& group) {
    std::vector<std::string> about;
    for (const models::Entry& entry : models::table()) about.push_back(fmt::format("{}: {}", entry.name, entry.about));
    app.add_option("--model", options.model, fmt::format("The network [{}]\n{}", options.model, fmt::join(about, "\n")))
        ->type_name("NAME")
        ->group(group);
  });
  return apps::run_main(app, words, argc, argv, [&] { mnist::run(options); });
}
