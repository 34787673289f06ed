// Sums of losses, kept on their device.
#include "train/loss_mean.h"

#include "autograd/grad_mode.h"

namespace weft::train {

void LossMean::add(const Tensor& loss, int64_t count) {
  count_ += count;
  if (device_ == cpu) return mean_.add(loss.item(), count);
  const NoGrad no_grad;
  const Tensor sum = loss.detach().to(f64).mul_(static_cast<double>(count));
  if (sum_.defined())
    sum_.add_(sum);
  else
    sum_ = sum;
  unread_ += count;
}

double LossMean::read() {
  if (sum_.defined()) {
    mean_.add(sum_.item() / static_cast<double>(unread_), unread_);
    sum_ = {};
    unread_ = 0;
  }
  return value();
}

}  // namespace weft::train
