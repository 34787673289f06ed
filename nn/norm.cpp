// Normalisation layers.
#include "nn/norm.h"

#include "autograd/ops/norm.h"
#include "nn/init.h"

namespace weft::nn {

BatchNorm::BatchNorm(const char* op, int64_t fewest, int64_t most, Options o)
    : options(o),
      weight(parameter("weight", ones({o.channels}))),
      bias(parameter("bias", zeros({o.channels}))),
      running_mean(buffer("running_mean", zeros({o.channels}))),
      running_var(buffer("running_var", ones({o.channels}))),
      op_(op),
      fewest_(fewest),
      most_(most) {
  WEFT_CHECK(o.channels > 0, op, "wants .channels above 0, got {}", o.channels);
}

Tensor BatchNorm::forward(const Tensor& x) {
  WEFT_CHECK(x.dim() >= fewest_ && x.dim() <= most_, op_, "wants {} dimensions, the input is {}",
             fewest_ == most_ ? fmt::format("{}", most_) : fmt::format("{} or {}", fewest_, most_), str(x.sizes()));
  return batch_norm(x, weight, bias, running_mean, running_var,
                    {.training = training(), .momentum = options.momentum, .eps = options.eps});
}

void BatchNorm::reset_own_parameters() {
  init::ones(weight);
  init::zeros(bias);
  init::zeros(running_mean);
  init::ones(running_var);
}

LayerNorm::LayerNorm(Options o)
    : options(o), weight(parameter("weight", ones(o.sizes))), bias(parameter("bias", zeros(o.sizes))) {
  WEFT_CHECK(!o.sizes.empty(), "layer_norm", "wants .sizes of one dimension or more");
}

Tensor LayerNorm::forward(const Tensor& x) { return layer_norm(x, weight, bias, options.eps); }

void LayerNorm::reset_own_parameters() {
  init::ones(weight);
  init::zeros(bias);
}

RMSNorm::RMSNorm(Options o) : options(o), weight(parameter("weight", ones(o.sizes))) {
  WEFT_CHECK(!o.sizes.empty(), "rms_norm", "wants .sizes of one dimension or more");
}

Tensor RMSNorm::forward(const Tensor& x) { return rms_norm(x, weight, options.eps); }

void RMSNorm::reset_own_parameters() { init::ones(weight); }

GroupNorm::GroupNorm(Options o)
    : options(o), weight(parameter("weight", ones({o.channels}))), bias(parameter("bias", zeros({o.channels}))) {
  WEFT_CHECK(o.groups > 0 && o.channels > 0 && o.channels % o.groups == 0, "group_norm",
             "{} groups do not divide {} channels", o.groups, o.channels);
}

Tensor GroupNorm::forward(const Tensor& x) { return group_norm(x, options.groups, weight, bias, options.eps); }

void GroupNorm::reset_own_parameters() {
  init::ones(weight);
  init::zeros(bias);
}

}  // namespace weft::nn
