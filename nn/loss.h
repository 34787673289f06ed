// The losses under the name that models use: nn::cross_entropy(logits, target).
#pragma once

#include "autograd/ops/loss.h"

namespace weft::nn {

using weft::bce_with_logits;
using weft::BceOptions;
using weft::cross_entropy;
using weft::CrossEntropyOptions;
using weft::huber_loss;
using weft::HuberOptions;
using weft::l1_loss;
using weft::LossOptions;
using weft::mse_loss;
using weft::nll_loss;
using weft::NllOptions;
using weft::Reduction;

}  // namespace weft::nn
