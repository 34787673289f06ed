// Losses: value and gradient.
#include "autograd/ops/loss.h"

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// x [N, C, d…] as rows [N · d…, C]; a view where C is last in memory.
Tensor class_rows(const Tensor& x) {
  Shape order;
  for (int64_t d = 0; d < x.dim(); ++d)
    if (d != 1) order.push_back(d);
  order.push_back(1);
  const int64_t classes = x.sizes()[1];
  return raw::reshape(raw::contiguous(raw::permute(x, order)), {x.numel() / classes, classes});
}

/// The reverse of class_rows.
Tensor from_class_rows(const Tensor& rows, const Shape& sizes) {
  Shape moved{sizes[0]}, order{0, sizes.size() - 1};
  for (int64_t d = 2; d < sizes.size(); ++d) {
    moved.push_back(sizes[d]);
    order.push_back(d - 1);
  }
  moved.push_back(sizes[1]);
  return raw::permute(raw::reshape(rows, moved), order);
}

void check_labels(const char* op, const Tensor& x, const Tensor& target, const Tensor& weight) {
  WEFT_CHECK(x.dim() >= 2 && x.sizes()[1] > 0, op, "wants scores [N, C] or [N, C, d…], got {}", str(x.sizes()));
  WEFT_CHECK(is_floating(x.dtype()), op, "wants scores of a floating dtype, got {}", name(x.dtype()));
  Shape wanted = x.sizes();
  wanted.erase(1);
  WEFT_CHECK(target.sizes() == wanted, op, "scores {} want labels {}, got {}", str(x.sizes()), str(wanted),
             str(target.sizes()));
  WEFT_CHECK(target.dtype() == DType::i64 || target.dtype() == DType::i32, op,
             "wants labels of dtype i64 or i32, got {}", name(target.dtype()));
  WEFT_CHECK(target.device() == x.device(), op, "the scores are on {}, the labels on {}", name(x.device()),
             name(target.device()));
  if (!weight.defined()) return;
  WEFT_CHECK(weight.sizes() == Shape{x.sizes()[1]}, op, "wants a weight for each of the {} classes, got {}",
             x.sizes()[1], str(weight.sizes()));
  WEFT_CHECK(weight.device() == x.device(), op, "the scores are on {}, the class weights on {}", name(x.device()),
             name(weight.device()));
}

/// A loss a row in the labels' shape, or one number.
Tensor empty_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  return empty(reduction == Reduction::none ? target.sizes() : Shape{}, {x.dtype(), x.device()});
}

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::mean:
      return mean(losses);
    case Reduction::sum:
      return sum(losses);
    case Reduction::none:
      break;
  }
  return losses;
}

void check_pair(const char* op, const Tensor& input, const Tensor& target) {
  WEFT_CHECK(input.sizes() == target.sizes(), op,
             "the input is {} but the target {}: losses do not broadcast, make the shapes equal", str(input.sizes()),
             str(target.sizes()));
  WEFT_CHECK(input.dtype() == target.dtype() && is_floating(input.dtype()), op,
             "wants input and target of one floating dtype, got {} and {}", name(input.dtype()), name(target.dtype()));
  WEFT_CHECK(input.device() == target.device(), op, "the input is on {}, the target on {}", name(input.device()),
             name(target.device()));
}

/// Element by element.
Tensor pair_loss(const char* op, const Tensor& input, const Tensor& target, PairLoss loss) {
  Tensor y = empty_like(input);
  kernels::pair_loss(input, target, loss, y);
  return record(op, {input, target}, y,
                [x = SavedTensor(input), t = SavedTensor(target), loss, want_x = needs_grad(input),
                 want_t = needs_grad(target)](const Tensor& dy) -> Grads {
                  if (loss.kind == PairLoss::logistic) {
                    Tensor dx;
                    if (want_x) {
                      dx = empty_like(x());
                      kernels::pair_loss_grad(dy, x(), t(), loss, dx);
                    }
                    return {dx, want_t ? -(dy * x()) : Tensor()};
                  }
                  Tensor dx = empty_like(x());
                  kernels::pair_loss_grad(dy, x(), t(), loss, dx);
                  const Tensor dt = want_t ? -dx : Tensor();
                  return {want_x ? dx : Tensor(), dt};
                });
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options) {
  if (autocast::widens(logits)) return cross_entropy(autocast::widened(logits), target, options);
  check_labels("cross_entropy", logits, target, options.weight);
  WEFT_CHECK(0 <= options.label_smoothing && options.label_smoothing <= 1, "cross_entropy",
             "label_smoothing must be between 0 and 1, got {}", options.label_smoothing);
  const LabelLoss loss{options.ignore_index, options.label_smoothing, options.reduction};
  const Tensor rows = class_rows(logits);
  const DType wide = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Tensor y = empty_loss(logits, target, options.reduction), total = empty({}, {DType::f64, logits.device()}),
         stats = empty({2, rows.sizes()[0]}, {wide, logits.device()});
  kernels::cross_entropy(rows, target, options.weight, loss, y, total, stats);
  return record(
      "cross_entropy", {logits}, y,
      [x = SavedTensor(rows), target = SavedTensor(target), weight = options.weight, total = SavedTensor(total),
       stats = SavedTensor(stats), loss, sizes = logits.sizes()](const Tensor& dy) -> Grads {
        Tensor dx = empty(x().sizes(), {x().dtype(), x().device()});
        kernels::cross_entropy_grad(dy, x(), target(), weight, loss, total(), stats(), dx);
        return {from_class_rows(dx, sizes)};
      });
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const NllOptions& options) {
  if (autocast::widens(log_probabilities)) return nll_loss(autocast::widened(log_probabilities), target, options);
  check_labels("nll_loss", log_probabilities, target, options.weight);
  const LabelLoss loss{options.ignore_index, 0, options.reduction};
  const Tensor rows = class_rows(log_probabilities);
  Tensor y = empty_loss(rows, target, options.reduction), total = empty({}, {DType::f64, rows.device()});
  kernels::nll(rows, target, options.weight, loss, y, total);
  return record("nll_loss", {log_probabilities}, y,
                [target = SavedTensor(target), weight = options.weight, total = SavedTensor(total), loss,
                 rows = rows.sizes(), sizes = log_probabilities.sizes()](const Tensor& dy) -> Grads {
                  Tensor dx = empty(rows, {dy.dtype(), dy.device()});
                  kernels::nll_grad(dy, target(), weight, loss, total(), dx);
                  return {from_class_rows(dx, sizes)};
                });
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& target, const BceOptions& options) {
  if (autocast::widens(logits, target))
    return bce_with_logits(autocast::widened(logits), autocast::widened(target), options);
  check_pair("bce_with_logits", logits, target);
  Tensor losses;
  if (options.positive_weight.defined()) {
    const Tensor extra = (raw::expand(options.positive_weight, logits.sizes()) - 1) * target + 1;
    losses = (1 - target) * logits + extra * softplus(-logits);
  } else {
    losses = pair_loss("bce_with_logits", logits, target, {PairLoss::logistic});
  }
  if (options.weight.defined()) losses = losses * raw::expand(options.weight, logits.sizes());
  return reduced(losses, options.reduction);
}

Tensor mse_loss(const Tensor& input, const Tensor& target, const LossOptions& options) {
  if (autocast::widens(input, target)) return mse_loss(autocast::widened(input), autocast::widened(target), options);
  check_pair("mse_loss", input, target);
  return reduced(pair_loss("mse_loss", input, target, {PairLoss::squared}), options.reduction);
}

Tensor l1_loss(const Tensor& input, const Tensor& target, const LossOptions& options) {
  if (autocast::widens(input, target)) return l1_loss(autocast::widened(input), autocast::widened(target), options);
  check_pair("l1_loss", input, target);
  return reduced(pair_loss("l1_loss", input, target, {PairLoss::absolute}), options.reduction);
}

Tensor huber_loss(const Tensor& input, const Tensor& target, const HuberOptions& options) {
  if (autocast::widens(input, target)) return huber_loss(autocast::widened(input), autocast::widened(target), options);
  check_pair("huber_loss", input, target);
  WEFT_CHECK(options.delta > 0, "huber_loss", "delta must be above 0, got {}", options.delta);
  return reduced(pair_loss("huber_loss", input, target, {PairLoss::huber, options.delta}), options.reduction);
}

}  // namespace weft
