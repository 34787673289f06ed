// Five steps of each optimizer against PyTorch.
#include <gtest/gtest.h>

#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

using Make = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Named>)>;

template <class Optimizer, class Options>
Make make(const Options& options) {
  return
      [options](std::vector<Named> parameters) { return std::make_unique<Optimizer>(std::move(parameters), options); };
}

/// Parameters in<i>, their gradients dy<i>[step], the learning rate lr[step], and the values out<i>[step] after it.
void check_steps(const Make& make_optimizer, const GoldenEntry& entry, DType dtype, double allowed) {
  std::vector<Named> parameters;
  for (const char* key : {"in0", "in1"}) {
    parameters.push_back({key, entry.at(key).to(dtype).clone()});
    parameters.back().value.requires_grad_();
  }
  const auto optimizer = make_optimizer(parameters);
  const std::vector<double> rates = entry.at("lr").to_vector<double>();
  for (size_t step = 0; step < rates.size(); ++step) {
    optimizer->set_lr(rates[step]);
    for (size_t i = 0; i < parameters.size(); ++i)
      parameters[i].value.set_grad(
          entry.at("dy" + std::to_string(i)).select(0, static_cast<int64_t>(step)).to(dtype).clone());
    optimizer->step();
    for (size_t i = 0; i < parameters.size(); ++i)
      expect_near(parameters[i].value.detach(),
                  entry.at("out" + std::to_string(i)).select(0, static_cast<int64_t>(step)), allowed,
                  "parameter " + std::to_string(i) + " after step " + std::to_string(step));
  }
}

TEST(Golden, optim) {
  const std::vector<std::pair<std::string, Make>> rows = {
      {"sgd/plain", make<optim::SGD>(optim::SgdOptions{})},
      {"sgd/momentum", make<optim::SGD>(optim::SgdOptions{.momentum = 0.9})},
      {"sgd/nesterov", make<optim::SGD>(optim::SgdOptions{.momentum = 0.9, .nesterov = true})},
      {"sgd/weight_decay", make<optim::SGD>(optim::SgdOptions{.momentum = 0.8, .weight_decay = 0.01})},
      {"sgd/dampening", make<optim::SGD>(optim::SgdOptions{.momentum = 0.9, .dampening = 0.3})},
      {"adam/plain", make<optim::Adam>(optim::AdamOptions{})},
      {"adam/weight_decay",
       make<optim::Adam>(optim::AdamOptions{.beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1})},
      {"adam/amsgrad", make<optim::Adam>(optim::AdamOptions{.amsgrad = true})},
      {"adamw/plain", make<optim::AdamW>(optim::AdamWOptions{.weight_decay = 0.01})},
      {"adamw/settings",
       make<optim::AdamW>(optim::AdamWOptions{.beta1 = 0.85, .beta2 = 0.9, .eps = 1e-5, .weight_decay = 0.2})},
      {"adamw/amsgrad", make<optim::AdamW>(optim::AdamWOptions{.weight_decay = 0.01, .amsgrad = true})},
      {"rmsprop/plain", make<optim::RMSprop>(optim::RmspropOptions{})},
      {"rmsprop/centered", make<optim::RMSprop>(optim::RmspropOptions{.centered = true})},
      {"rmsprop/momentum", make<optim::RMSprop>(optim::RmspropOptions{.alpha = 0.95, .momentum = 0.9})},
      {"rmsprop/everything", make<optim::RMSprop>(optim::RmspropOptions{
                                 .eps = 1e-6, .weight_decay = 0.1, .momentum = 0.5, .centered = true})},
      {"adagrad/plain", make<optim::Adagrad>(optim::AdagradOptions{})},
      {"adagrad/settings", make<optim::Adagrad>(optim::AdagradOptions{
                               .lr_decay = 0.1, .weight_decay = 0.05, .initial_accumulator_value = 0.2, .eps = 1e-8})},
      {"adadelta/plain", make<optim::Adadelta>(optim::AdadeltaOptions{})},
      {"adadelta/settings",
       make<optim::Adadelta>(optim::AdadeltaOptions{.rho = 0.8, .eps = 1e-5, .weight_decay = 0.1})},
  };
  const auto entries = load_golden("optim");
  std::vector<std::string> names;
  for (const auto& [name, make_optimizer] : rows) names.push_back(name);
  expect_same_names(entries, names);
  for (const auto& [name, make_optimizer] : rows) {
    const auto entry = entries.find(name);
    if (entry == entries.end()) continue;
    SCOPED_TRACE(name);
    check_steps(make_optimizer, entry->second, f64, Tolerance{}.f64);
    check_steps(make_optimizer, entry->second, f32, Tolerance{}.f32);
  }
}

}  // namespace
}  // namespace weft::testing
