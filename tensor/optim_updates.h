// What each optimizer does to one element, as one functor each, shared by all devices: the new value of a parameter
// from its value and gradient; state is changed in place. C is the type that the parameter is computed in.
#pragma once

#include <cmath>
#include <span>

#include "tensor/host_device.h"
#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft::updates {

/// What a sweep does beside the update: 16-bit copies of the new values, and gradients shortened to a common norm. Both
/// are off where they are empty.
struct Extras {
  std::span<const Tensor> copies = {};
  Tensor squared_norm = {};
  double max_norm = 0;
};

/// What gradients of this common norm are multiplied by: max_norm / (norm + 1e-6) where that is below 1, and 1 where it
/// is not or the norm is not finite.
WEFT_HD double clip_factor(double squared_norm, double max_norm) {
  const double factor = max_norm / (std::sqrt(squared_norm) + 1e-6);
  return factor < 1 && squared_norm <= 1.7976931348623157e308 ? factor : 1.0;
}

template <class C>
struct Sgd {
  C lr, decay;
  explicit Sgd(const SgdArgs& a) : lr(static_cast<C>(a.lr)), decay(static_cast<C>(a.weight_decay)) {}
  WEFT_HD C operator()(C p, C g) const { return p - lr * (g + decay * p); }
};

template <class C, bool nesterov>
struct SgdMomentum {
  C lr, momentum, share, decay;
  explicit SgdMomentum(const SgdArgs& a)
      : lr(static_cast<C>(a.lr)),
        momentum(static_cast<C>(a.momentum)),
        share(static_cast<C>(1 - a.dampening)),
        decay(static_cast<C>(a.weight_decay)) {}
  WEFT_HD C operator()(C p, C g, C& m) const {
    g += decay * p;
    m = momentum * m + share * g;
    return p - lr * (nesterov ? g + momentum * m : m);
  }
};

/// Adam and AdamW; `clip` is for gradients that are too long.
template <class C>
struct Adam {
  C size, scale, beta1, rest1, beta2, rest2, eps, l2, decay, clip = 1;
  explicit Adam(const AdamArgs& a)
      : size(static_cast<C>(a.lr / a.correction1)),
        scale(static_cast<C>(1 / std::sqrt(a.correction2))),
        beta1(static_cast<C>(a.beta1)),
        rest1(static_cast<C>(1 - a.beta1)),
        beta2(static_cast<C>(a.beta2)),
        rest2(static_cast<C>(1 - a.beta2)),
        eps(static_cast<C>(a.eps)),
        l2(static_cast<C>(a.l2)),
        decay(static_cast<C>(a.decay)) {}
  WEFT_HD C operator()(C p, C g, C& m, C& v) const {
    moments(p, g, m, v);
    return p * decay - size * m / (std::sqrt(v) * scale + eps);
  }
  /// With AMSGrad's maximum.
  WEFT_HD C operator()(C p, C g, C& m, C& v, C& top) const {
    moments(p, g, m, v);
    top = v < top ? top : v;  // a NaN stays
    return p * decay - size * m / (std::sqrt(top) * scale + eps);
  }

 private:
  WEFT_HD void moments(C p, C g, C& m, C& v) const {
    g = g * clip + l2 * p;
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
  }
};

/// RMSprop in its four kinds: state is squares, means where `centered`, momenta where `buffered`.
template <class C, bool centered, bool buffered>
struct Rmsprop {
  C lr, alpha, rest, eps, decay, momentum;
  explicit Rmsprop(const RmspropArgs& a)
      : lr(static_cast<C>(a.lr)),
        alpha(static_cast<C>(a.alpha)),
        rest(static_cast<C>(1 - a.alpha)),
        eps(static_cast<C>(a.eps)),
        decay(static_cast<C>(a.weight_decay)),
        momentum(static_cast<C>(a.momentum)) {}
  WEFT_HD C operator()(C p, C g, C& v) const { return p - lr * plain(g + decay * p, v); }
  WEFT_HD C operator()(C p, C g, C& v, C& other) const {
    if constexpr (centered)
      return p - lr * around_mean(g + decay * p, v, other);
    else
      return moved(p, plain(g + decay * p, v), other);
  }
  WEFT_HD C operator()(C p, C g, C& v, C& mean, C& m) const { return moved(p, around_mean(g + decay * p, v, mean), m); }

 private:
  WEFT_HD C plain(C g, C& v) const {
    v = alpha * v + rest * g * g;
    return g / (std::sqrt(v) + eps);
  }
  WEFT_HD C around_mean(C g, C& v, C& mean) const {
    v = alpha * v + rest * g * g;
    mean = alpha * mean + rest * g;
    const C variance = v - mean * mean;
    return g / (std::sqrt(variance < 0 ? C(0) : variance) + eps);  // rounding may pass 0
  }
  WEFT_HD C moved(C p, C change, C& m) const {
    m = momentum * m + change;
    return p - lr * m;
  }
};

template <class C>
struct Adagrad {
  C lr, eps, decay;
  explicit Adagrad(const AdagradArgs& a)
      : lr(static_cast<C>(a.lr)), eps(static_cast<C>(a.eps)), decay(static_cast<C>(a.weight_decay)) {}
  WEFT_HD C operator()(C p, C g, C& sum) const {
    g += decay * p;
    sum += g * g;
    return p - lr * g / (std::sqrt(sum) + eps);
  }
};

template <class C>
struct Adadelta {
  C lr, rho, rest, eps, decay;
  explicit Adadelta(const AdadeltaArgs& a)
      : lr(static_cast<C>(a.lr)),
        rho(static_cast<C>(a.rho)),
        rest(static_cast<C>(1 - a.rho)),
        eps(static_cast<C>(a.eps)),
        decay(static_cast<C>(a.weight_decay)) {}
  WEFT_HD C operator()(C p, C g, C& v, C& d) const {
    g += decay * p;
    v = rho * v + rest * g * g;
    const C delta = std::sqrt(d + eps) / std::sqrt(v + eps) * g;
    d = rho * d + rest * delta * delta;
    return p - lr * delta;
  }
};

}  // namespace weft::updates
