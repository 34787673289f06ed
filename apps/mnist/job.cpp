// The MNIST job: data, model, training, test after each epoch.
#include "apps/mnist/job.h"

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/mnist.h"
#include "models/models.h"
#include "optim/optimizers.h"
#include "tensor/safetensors.h"
#include "train/progress.h"

namespace weft::mnist {
namespace {

using train::with_commas;

data::Split read_data(const std::string& folder, const Shape& wanted) {
  data::Split data = data::mnist(folder);
  const Shape& sizes = data.train.images().sizes();
  WEFT_CHECK(Shape({sizes[1], sizes[2], sizes[3]}) == wanted, "--data",
             "{} has images of {} × {}, the model wants {} × {}", folder, sizes[2], sizes[3], wanted[1], wanted[2]);
  return data;
}

/// "mnist", or the name of the set that is in its place: the last part of a folder such as …/fashion-mnist.
std::string data_name(const std::string& folder) {
  const std::string name = std::filesystem::path(folder).filename().string();
  return name.ends_with("mnist") ? name : "mnist";
}

}  // namespace

void run(const Options& options) {
  Options o = options;
  if (o.eval_only) o.epochs = 0;
  const models::Entry& entry = models::find(o.model);
  const double lr = o.lr > 0 ? o.lr : optim::find(o.optimizer).usual_lr;
  const Device device = apps::set_up(o);
  const std::unique_ptr<nn::Module> model = entry.make();
  if (!o.load.empty()) model->load_state_dict(load(o.load));
  model->to(device);
  const std::string folder = data::find_mnist(o.data);
  const data::Split data = read_data(folder, entry.input);

  fmt::print("{}   {} train, {} test images   {} parameters   {}\n", data_name(folder), with_commas(data.train.size()),
             with_commas(data.test.size()), with_commas(model->parameter_count()),
             apps::describe(o, device, fmt::format("{}, one-cycle {:g}", o.optimizer, lr)));
  std::fflush(stdout);

  apps::Outcome outcome;
  const auto started = std::chrono::steady_clock::now();
  const auto test = [&](int64_t = 0) {
    outcome.test = apps::test(o, *model, train::classification, data.test, device, "test images");
    return fmt::format("test {:.2f} %", outcome.test.accuracy);
  };
  if (o.epochs > 0) {
    const auto optimizer = optim::find(o.optimizer).make(model->parameters());
    train::FitOptions fit = apps::fit_options(o, device);
    fit.schedule = [lr](int64_t steps) { return optim::schedule::one_cycle(lr, {.steps = steps}); };
    outcome.fitted = train::fit(*model, train::classification, data.train, *optimizer, fit, test);
  } else {
    test();
  }
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!o.save.empty()) save(o.save, model->state_dict());
  apps::finish(o, outcome, {});
}

}  // namespace weft::mnist
