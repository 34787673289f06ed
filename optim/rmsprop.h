// RMSprop (Tieleman and Hinton, Coursera lecture 6.5, 2012), and its centered version (Graves, 2013, arXiv:1308.0850,
// equations 38 to 45, with eps outside of the root).
#pragma once

#include "optim/optimizer.h"

namespace weft::optim {

struct RmspropOptions {
  double lr = 1e-2;
  double alpha = 0.99;      ///< of the mean of squares, in [0, 1)
  double eps = 1e-8;        ///< added to the root
  double weight_decay = 0;  ///< L2
  double momentum = 0;
  bool centered = false;  ///< divide by the deviation in place of the root mean square
};

/// v = alpha · v + (1 - alpha) g², b = momentum · b + g / (√v + eps), p -= lr · b.
/// State: square_avg, grad_avg where centered, momentum_buffer where momentum is not 0.
class RMSprop : public OptimizerOf<RmspropOptions> {
 public:
  explicit RMSprop(std::vector<Named> parameters, const RmspropOptions& options = {})
      : RMSprop(one_group(std::move(parameters), options)) {}
  explicit RMSprop(std::vector<Group<RmspropOptions>> groups);

 protected:
  std::vector<Field> fields(size_t group) override;
  void check(size_t group) const override;
  std::vector<Slot> slots(size_t group) const override;
  void update(size_t group, const Batch& batch) override;
};

}  // namespace weft::optim
