// The factor's rise and fall, and the steps that are skipped.
#include "optim/loss_scaler.h"

#include <fmt/ranges.h>

#include <cmath>

#include "autograd/ops/elementwise.h"
#include "optim/entries.h"
#include "optim/gradients.h"
#include "tensor/kernels.h"

namespace weft::optim {
namespace {

constexpr const char* kName = "loss_scaler";
constexpr double kLowest = 0x1p-16, kHighest = 0x1p126;  // 1 / factor and factor are f32 numbers

/// What is wrong with the numbers of a scaler.
std::vector<std::string> problems_of(const LossScalerOptions& o) {
  std::vector<std::string> out;
  if (!(o.initial >= kLowest && o.initial <= kHighest))
    out.push_back(fmt::format("the factor must be in [2^-16, 2^126], got {}", o.initial));
  if (!(o.growth >= 1 && std::isfinite(o.growth)))
    out.push_back(fmt::format("growth must be finite and at least 1, got {}", o.growth));
  if (!(o.backoff > 0 && o.backoff < 1)) out.push_back(fmt::format("backoff must be in (0, 1), got {}", o.backoff));
  if (o.interval < 1) out.push_back(fmt::format("interval must be at least 1, got {}", o.interval));
  return out;
}

}  // namespace

LossScaler::LossScaler(const LossScalerOptions& options) : options_(options), factor_(options.initial) {
  const std::vector<std::string> problems = problems_of(options);
  WEFT_CHECK(problems.empty(), kName, "{}", fmt::join(problems, "; "));
}

Tensor LossScaler::scale(const Tensor& loss) const {
  if (!enabled()) return loss;
  WEFT_CHECK(loss.dtype() == f32 || loss.dtype() == f64, kName, "wants a loss of f32 or f64 to scale, got {}",
             weft::name(loss.dtype()));
  return loss * factor_;
}

bool LossScaler::unscale(Optimizer& optimizer) {
  if (!enabled()) return true;
  WEFT_CHECK(!unscaled_, kName, "the gradients of {} are unscaled already; once before each step", unscaled_->name());
  const std::vector<Named> parameters = optimizer.parameters();
  for (const Named& p : parameters) {
    const DType dtype = p.value.dtype();
    WEFT_CHECK(!p.value.grad().defined() || dtype == f32 || dtype == f64, kName,
               "parameter {} is {}: parameters stay f32, and Autocast casts them", p.name, weft::name(dtype));
  }
  const std::vector<Tensor> grads = gradients_of(parameters);
  double squares = squared_norm(grads);
  if (options_.reduce) squares = options_.reduce(squares);
  finite_ = std::isfinite(squares);
  if (finite_ && !grads.empty()) {
    kernels::scale(grads, 1 / factor_);
    for (const Tensor& grad : grads) grad.storage()->bump_version();
  }
  unscaled_ = &optimizer;
  return finite_;
}

bool LossScaler::step(Optimizer& optimizer, const StepOptions& options) {
  if (!enabled()) {
    optimizer.step(options);
    return true;
  }
  if (!unscaled_) unscale(optimizer);
  WEFT_CHECK(unscaled_ == &optimizer, kName, "was unscaled for another optimizer; each wants a scaler of its own");
  unscaled_ = nullptr;
  if (finite_) {
    optimizer.step(options);
    if (++good_steps_ >= options_.interval) {
      factor_ = std::min(factor_ * options_.growth, kHighest);
      good_steps_ = 0;
    }
    return true;
  }
  ++skipped_;
  good_steps_ = 0;
  WEFT_CHECK(factor_ * options_.backoff >= kLowest, kName,
             "the gradients are not finite even with a factor of {}: the loss or the model diverges", factor_);
  factor_ *= options_.backoff;
  return false;
}

std::vector<Named> LossScaler::state_dict() const {
  return {{"factor", scalar(factor_, f64)},           {"growth", scalar(options_.growth, f64)},
          {"backoff", scalar(options_.backoff, f64)}, {"interval", scalar(options_.interval, i64)},
          {"good_steps", scalar(good_steps_, i64)},   {"skipped", scalar(skipped_, i64)}};
}

void LossScaler::load_state_dict(const std::vector<Named>& state) {
  Entries entries(state);
  const auto number = [&](const char* name) {
    const Tensor x = entries.take(name, f64, {});
    return x.defined() ? x.item() : 1;
  };
  const auto count = [&](const char* name) {
    const Tensor x = entries.take(name, i64, {});
    return x.defined() ? x.to_vector<int64_t>().front() : 1;
  };
  LossScalerOptions loaded = options_;
  loaded.initial = number("factor");
  loaded.growth = number("growth");
  loaded.backoff = number("backoff");
  loaded.interval = count("interval");
  const int64_t good_steps = count("good_steps"), skipped = count("skipped");
  entries.no_more();
  if (entries.problems.empty()) {
    entries.problems = problems_of(loaded);
    if (good_steps < 0 || skipped < 0)
      entries.problems.push_back(fmt::format("good_steps {} and skipped {} must be at least 0", good_steps, skipped));
  }
  WEFT_CHECK(entries.problems.empty(), kName, "the state does not fit: {}", fmt::join(entries.problems, "; "));
  factor_ = loaded.initial;
  loaded.initial = options_.initial;
  options_ = loaded;
  good_steps_ = good_steps;
  skipped_ = skipped;
  unscaled_ = nullptr;
}

}  // namespace weft::optim
