// What each loss of two numbers computes for one pair, shared by all devices.
#pragma once

#include "tensor/functors.h"
#include "tensor/kernel_args.h"

namespace weft::functors {

// `Value` of (x, target), and `Slope` along x.
struct SquaredLoss {
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    return (x - t) * (x - t);
  }
};
struct SquaredSlope {
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    return T(2) * (x - t);
  }
};
struct AbsoluteLoss {
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    return std::fabs(x - t);
  }
};
/// NaN stays NaN.
struct AbsoluteSlope {
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    return x > t ? T(1) : x < t ? T(-1) : x - t == T(0) ? T(0) : x - t;
  }
};
struct HuberLoss {
  double delta;
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    const T d = std::fabs(x - t), bend = static_cast<T>(delta);
    return d <= bend ? T(0.5) * d * d : bend * (d - T(0.5) * bend);
  }
};
struct HuberSlope {
  double delta;
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    const T d = x - t, bend = static_cast<T>(delta);
    return d > bend ? bend : d < -bend ? -bend : d;
  }
};
struct LogisticLoss {
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    return (x > T(0) ? x : T(0)) - x * t + math::log1p_unit(math::exp(-std::fabs(x)));
  }
};
struct LogisticSlope {
  template <class T>
  WEFT_HD T operator()(T x, T t) const {
    return math::sigmoid(x) - t;
  }
};
/// A slope times the gradient that arrives.
template <class Slope>
struct ChainSlope {
  Slope slope;
  template <class T>
  WEFT_HD T operator()(T dy, T x, T t) const {
    return slope(x, t) * dy;
  }
};

}  // namespace weft::functors

namespace weft {

/// Calls use(value, slope) with the functors of a loss.
template <class Use>
void with_pair_loss(const PairLoss& loss, const Use& use) {
  switch (loss.kind) {
    case PairLoss::squared:
      return use(functors::SquaredLoss{}, functors::SquaredSlope{});
    case PairLoss::absolute:
      return use(functors::AbsoluteLoss{}, functors::AbsoluteSlope{});
    case PairLoss::huber:
      return use(functors::HuberLoss{loss.delta}, functors::HuberSlope{loss.delta});
    case PairLoss::logistic:
      return use(functors::LogisticLoss{}, functors::LogisticSlope{});
  }
}

}  // namespace weft
