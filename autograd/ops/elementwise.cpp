// Elementwise operations: value and gradient.
#include "autograd/ops/elementwise.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "autograd/autocast.h"
#include "autograd/ops/activation.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

struct Operands {
  Tensor a, b, out;
};

/// Both operands expanded to the common shape, and room for the result.
Operands broadcast_operands(const char* op, const Tensor& a, const Tensor& b) {
  WEFT_CHECK(a.dtype() == b.dtype(), op, "the operands have dtypes {} and {}; convert one with .to()", name(a.dtype()),
             name(b.dtype()));
  WEFT_CHECK(a.device() == b.device(), op, "the operands are on {} and {}", name(a.device()), name(b.device()));
  if (a.sizes() == b.sizes()) return {a, b, empty_like(a)};
  const Shape sizes = broadcast(op, a.sizes(), b.sizes());
  if (a.sizes() == sizes) return {a, raw::expand(b, sizes), empty_like(a)};
  if (b.sizes() == sizes) return {raw::expand(a, sizes), b, empty_like(b)};
  return {raw::expand(a, sizes), raw::expand(b, sizes), empty(sizes, {a.dtype(), a.device()})};
}

template <class Kernel>
Tensor binary(const char* op, const Kernel& kernel, const Tensor& a, const Tensor& b) {
  Operands o = broadcast_operands(op, a, b);
  kernel(o.a, o.b, o.out);
  return std::move(o.out);
}

template <class Kernel>
Tensor compare(const char* op, const Kernel& kernel, const Tensor& a, const Tensor& b) {
  if (autocast::mixed(a, b)) return compare(op, kernel, autocast::widened(a), autocast::widened(b));
  Operands o = broadcast_operands(op, a, b);
  Tensor out = empty_like(o.out, DType::boolean);
  kernel(o.a, o.b, out);
  return out;
}

template <class Kernel, class... Extra>
Tensor unary(const Kernel& kernel, const Tensor& x, Extra... extra) {
  Tensor y = empty_like(x);
  kernel(x, extra..., y);
  return y;
}

/// f(dy, saved) into a new tensor.
template <class Kernel, class... Extra>
Tensor grad_of(const Kernel& kernel, const Tensor& dy, const Tensor& saved, Extra... extra) {
  Tensor dx = empty_like(saved);
  kernel(dy, saved, extra..., dx);
  return dx;
}

/// dy · slope, where a dy of 0 stays 0 even if the slope is infinite; the operands broadcast.
Tensor chained(const Tensor& dy, const Tensor& slope) { return binary("chain", kernels::chain, dy, slope); }

void check_divisor(const Tensor& b) {
  if (is_floating(b.dtype())) return;
  for (int64_t v : b.to_vector<int64_t>()) WEFT_CHECK(v != 0, "div", "an integer divisor is 0");
}

}  // namespace

Tensor number_like(const Tensor& x, double value) {
  dispatch(x.dtype(), [&]<class T>() {
    if constexpr (std::integral<T>) {
      using Limits = std::numeric_limits<T>;
      WEFT_CHECK(std::nearbyint(value) == value, "scalar", "{} is not a whole number, and the tensor is {}", value,
                 name(x.dtype()));
      WEFT_CHECK(static_cast<double>(Limits::min()) <= value && value < static_cast<double>(Limits::max()) + 1,
                 "scalar", "{} does not fit the tensor's dtype, {}", value, name(x.dtype()));
    }
  });
  return scalar(value, {x.dtype(), x.device()});
}

Tensor sum_to(const Tensor& x, const Shape& sizes) {
  if (x.sizes() == sizes) return x;
  const int64_t added = x.dim() - sizes.size();
  Shape kept = x.sizes();
  for (int64_t i = 0; i < x.dim(); ++i)
    if (i < added || sizes[i - added] == 1) kept[i] = 1;
  Tensor out = empty(kept, {x.dtype(), x.device()});
  kernels::sum(x, out);
  return raw::reshape(out, sizes);
}

Tensor add(const Tensor& a, const Tensor& b) {
  if (autocast::mixed(a, b)) return add(autocast::widened(a), autocast::widened(b));
  return record("add", {a, b}, binary("add", kernels::add, a, b),
                [as = a.sizes(), bs = b.sizes(), da = needs_grad(a), db = needs_grad(b)](const Tensor& dy) -> Grads {
                  return {da ? sum_to(dy, as) : Tensor(), db ? sum_to(dy, bs) : Tensor()};
                });
}

Tensor sub(const Tensor& a, const Tensor& b) {
  if (autocast::mixed(a, b)) return sub(autocast::widened(a), autocast::widened(b));
  return record("sub", {a, b}, binary("sub", kernels::sub, a, b),
                [as = a.sizes(), bs = b.sizes(), da = needs_grad(a), db = needs_grad(b)](const Tensor& dy) -> Grads {
                  return {da ? sum_to(dy, as) : Tensor(), db ? -sum_to(dy, bs) : Tensor()};
                });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  if (autocast::mixed(a, b)) return mul(autocast::widened(a), autocast::widened(b));
  const bool da = needs_grad(a), db = needs_grad(b);
  return record("mul", {a, b}, binary("mul", kernels::mul, a, b),
                [a = db ? SavedTensor(a) : SavedTensor(), b = da ? SavedTensor(b) : SavedTensor(), as = a.sizes(),
                 bs = b.sizes()](const Tensor& dy) -> Grads {
                  return {b.defined() ? sum_to(chained(dy, b()), as) : Tensor(),
                          a.defined() ? sum_to(chained(dy, a()), bs) : Tensor()};
                });
}

Tensor div(const Tensor& a, const Tensor& b) {
  if (autocast::mixed(a, b)) return div(autocast::widened(a), autocast::widened(b));
  check_divisor(b);
  Tensor y = binary("div", kernels::div, a, b);
  return record("div", {a, b}, y,
                [y = SavedTensor(y), b = SavedTensor(b), as = a.sizes(), bs = b.sizes(), da = needs_grad(a),
                 db = needs_grad(b)](const Tensor& dy) -> Grads {
                  const Tensor scaled = binary("div", kernels::chain_div, dy, b());
                  return {da ? sum_to(scaled, as) : Tensor(), db ? sum_to(-chained(scaled, y()), bs) : Tensor()};
                });
}

Tensor pow(const Tensor& a, const Tensor& b) {
  if (autocast::widens(a, b)) return pow(autocast::widened(a), autocast::widened(b));
  Tensor y = binary("pow", kernels::pow, a, b);
  return record("pow", {a, b}, y,
                [a = SavedTensor(a), b = SavedTensor(b), y = SavedTensor(y), da = needs_grad(a),
                 db = needs_grad(b)](const Tensor& dy) -> Grads {
                  Grads grads{Tensor(), Tensor()};
                  if (da) {
                    const Tensor slope = b() * pow(a(), b() - 1);
                    grads[0] = sum_to(chained(dy, where(eq(b(), 0), zeros_like(slope), slope)), a().sizes());
                  }
                  if (db) {  // y · ln a, and 0 at a = 0
                    const Tensor slope = y() * log(a());
                    grads[1] = sum_to(chained(dy, where(eq(a(), 0), zeros_like(slope), slope)), b().sizes());
                  }
                  return grads;
                });
}

Tensor pow(const Tensor& x, double exponent) {
  if (autocast::widens(x)) return pow(autocast::widened(x), exponent);
  return record("pow", {x}, unary(kernels::pow_scalar, x, exponent),
                [x = SavedTensor(x), exponent](const Tensor& dy) -> Grads {
                  if (exponent == 0) return {zeros_like(dy)};
                  return {chained(dy, unary(kernels::pow_scalar, x(), exponent - 1)) * exponent};
                });
}

namespace {

/// The share of dy that goes to the operand that won; half of it where they are equal.
Tensor winners_share(const Tensor& dy, const Tensor& wins, const Tensor& ties) {
  return where(ties, dy * 0.5, where(wins, dy, zeros_like(dy)));
}

template <class Kernel, class Beats>
Tensor extreme(const char* op, const Kernel& kernel, const Beats& beats, const Tensor& a, const Tensor& b) {
  if (autocast::mixed(a, b)) return extreme(op, kernel, beats, autocast::widened(a), autocast::widened(b));
  return record(op, {a, b}, binary(op, kernel, a, b),
                [a = SavedTensor(a), b = SavedTensor(b), beats, op](const Tensor& dy) -> Grads {
                  const Tensor a_wins = compare(op, beats, a(), b()), a_is_nan = ne(a(), a());
                  const Tensor share = where(a_is_nan, dy, winners_share(dy, a_wins, eq(a(), b())));
                  return {sum_to(share, a().sizes()), sum_to(dy - share, b().sizes())};
                });
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) { return extreme("maximum", kernels::maximum, kernels::gt, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extreme("minimum", kernels::minimum, kernels::lt, a, b); }

Tensor affine(const Tensor& x, double scale, double shift) {
  return record("affine", {x}, unary(kernels::affine, x, scale, shift),
                [scale](const Tensor& dy) -> Grads { return {affine(dy, scale, 0)}; });
}

Tensor operator+(const Tensor& a, double b) {
  return is_floating(a.dtype()) ? affine(a, 1, b) : add(a, number_like(a, b));
}
Tensor operator-(const Tensor& a, double b) {
  return is_floating(a.dtype()) ? affine(a, 1, -b) : sub(a, number_like(a, b));
}
Tensor operator*(const Tensor& a, double b) {
  return is_floating(a.dtype()) ? affine(a, b, 0) : mul(a, number_like(a, b));
}
Tensor operator/(const Tensor& a, double b) { return div(a, number_like(a, b)); }
Tensor operator+(double a, const Tensor& b) { return b + a; }
Tensor operator-(double a, const Tensor& b) {
  return is_floating(b.dtype()) ? affine(b, -1, a) : sub(number_like(b, a), b);
}
Tensor operator*(double a, const Tensor& b) { return b * a; }
Tensor operator/(double a, const Tensor& b) { return div(number_like(b, a), b); }
Tensor operator-(const Tensor& x) { return neg(x); }

Tensor neg(const Tensor& x) {
  return record("neg", {x}, unary(kernels::neg, x), [](const Tensor& dy) -> Grads { return {-dy}; });
}

Tensor abs(const Tensor& x) {
  return record("abs", {x}, unary(kernels::abs, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {dy * sign(x())}; });
}

Tensor square(const Tensor& x) {
  if (autocast::widens(x)) return square(autocast::widened(x));
  return record("square", {x}, unary(kernels::square, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {dy * x() * 2}; });
}

Tensor exp(const Tensor& x) {
  if (autocast::widens(x)) return exp(autocast::widened(x));
  Tensor y = unary(kernels::exp, x);
  return record("exp", {x}, y, [y = SavedTensor(y)](const Tensor& dy) -> Grads { return {chained(dy, y())}; });
}

Tensor log(const Tensor& x) {
  if (autocast::widens(x)) return log(autocast::widened(x));
  return record("log", {x}, unary(kernels::log, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {grad_of(kernels::chain_div, dy, x())}; });
}

Tensor sqrt(const Tensor& x) {
  Tensor y = unary(kernels::sqrt, x);
  return record("sqrt", {x}, y,
                [y = SavedTensor(y)](const Tensor& dy) -> Grads { return {grad_of(kernels::sqrt_grad, dy, y())}; });
}

Tensor rsqrt(const Tensor& x) {
  if (autocast::widens(x)) return rsqrt(autocast::widened(x));
  Tensor y = unary(kernels::rsqrt, x);
  return record("rsqrt", {x}, y,
                [y = SavedTensor(y)](const Tensor& dy) -> Grads { return {grad_of(kernels::rsqrt_grad, dy, y())}; });
}

Tensor sin(const Tensor& x) {
  return record("sin", {x}, unary(kernels::sin, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {dy * cos(x())}; });
}

Tensor cos(const Tensor& x) {
  return record("cos", {x}, unary(kernels::cos, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {-(dy * sin(x()))}; });
}

Tensor erf(const Tensor& x) {
  return record("erf", {x}, unary(kernels::erf, x), [x = SavedTensor(x)](const Tensor& dy) -> Grads {
    return {dy * exp(-square(x())) * (2 * std::numbers::inv_sqrtpi)};
  });
}

Tensor sigmoid(const Tensor& x) {
  Tensor y = unary(kernels::sigmoid, x);
  return record("sigmoid", {x}, y,
                [y = SavedTensor(y)](const Tensor& dy) -> Grads { return {grad_of(kernels::sigmoid_grad, dy, y())}; });
}

Tensor tanh(const Tensor& x) {
  Tensor y = unary(kernels::tanh, x);
  return record("tanh", {x}, y,
                [y = SavedTensor(y)](const Tensor& dy) -> Grads { return {grad_of(kernels::tanh_grad, dy, y())}; });
}

Tensor relu(Tensor x) {
  Tensor y = x.unique() && raw::is_dense(x) ? raw::detach(x) : empty_like(x);
  kernels::relu(x, y);
  return record("relu", {x}, y, [y = SavedTensor(y)](const Tensor& dy) -> Grads { return {relu_gradient(dy, y())}; });
}

Tensor relu_gradient(const Tensor& dy, const Tensor& y) {
  Tensor dx = dy.unique() && dy.strides() == y.strides() ? dy : empty_like(y);
  kernels::relu_grad(dy, y, dx);
  return dx;
}

Tensor activate(Tensor x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return relu(std::move(x));
    case Activation::gelu:
      return gelu(x);
    case Activation::gelu_tanh:
      return gelu_tanh(x);
  }
  return x;
}

Tensor leaky_relu(const Tensor& x, double slope) {
  return record("leaky_relu", {x}, unary(kernels::leaky_relu, x, slope),
                [x = SavedTensor(x), slope](const Tensor& dy) -> Grads {
                  return {grad_of(kernels::leaky_relu_grad, dy, x(), slope)};
                });
}

Tensor gelu(const Tensor& x) {
  return record("gelu", {x}, unary(kernels::gelu, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {grad_of(kernels::gelu_grad, dy, x())}; });
}

Tensor gelu_tanh(const Tensor& x) {
  return record("gelu_tanh", {x}, unary(kernels::gelu_tanh, x), [x = SavedTensor(x)](const Tensor& dy) -> Grads {
    return {grad_of(kernels::gelu_tanh_grad, dy, x())};
  });
}

Tensor silu(const Tensor& x) {
  return record("silu", {x}, unary(kernels::silu, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {grad_of(kernels::silu_grad, dy, x())}; });
}

Tensor softplus(const Tensor& x) {
  if (autocast::widens(x)) return softplus(autocast::widened(x));
  return record("softplus", {x}, unary(kernels::softplus, x),
                [x = SavedTensor(x)](const Tensor& dy) -> Grads { return {dy * sigmoid(x())}; });
}

Tensor clamp(const Tensor& x, double low, double high) {
  WEFT_CHECK(low <= high, "clamp", "the bounds [{}, {}] are empty", low, high);
  return record("clamp", {x}, unary(kernels::clamp, x, low, high),
                [x = SavedTensor(x), low, high](const Tensor& dy) -> Grads {
                  return {grad_of(kernels::clamp_grad, dy, x(), low, high)};
                });
}

Tensor sign(const Tensor& x) { return unary(kernels::sign, x); }

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  if (autocast::mixed(a, b)) return where(condition, autocast::widened(a), autocast::widened(b));
  WEFT_CHECK(condition.dtype() == DType::boolean, "where", "the condition must be bool, got {}",
             name(condition.dtype()));
  WEFT_CHECK(a.dtype() == b.dtype(), "where", "the branches have dtypes {} and {}", name(a.dtype()), name(b.dtype()));
  WEFT_CHECK(condition.device() == a.device() && a.device() == b.device(), "where",
             "the condition is on {}, the branches on {} and {}", name(condition.device()), name(a.device()),
             name(b.device()));
  const Shape sizes = broadcast("where", condition.sizes(), broadcast("where", a.sizes(), b.sizes()));
  Tensor y = a.sizes() == sizes ? empty_like(a) : empty(sizes, {a.dtype(), a.device()});
  kernels::where(raw::expand(condition, sizes), raw::expand(a, sizes), raw::expand(b, sizes), y);
  return record(
      "where", {a, b}, y,
      [c = SavedTensor(condition), as = a.sizes(), bs = b.sizes(), da = needs_grad(a),
       db = needs_grad(b)](const Tensor& dy) -> Grads {
        const Tensor zero = zeros_like(dy);
        return {da ? sum_to(where(c(), dy, zero), as) : Tensor(), db ? sum_to(where(c(), zero, dy), bs) : Tensor()};
      });
}

Tensor eq(const Tensor& a, const Tensor& b) { return compare("eq", kernels::eq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compare("ne", kernels::ne, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compare("lt", kernels::lt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compare("le", kernels::le, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compare("gt", kernels::gt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compare("ge", kernels::ge, a, b); }
Tensor eq(const Tensor& a, double b) { return eq(a, number_like(a, b)); }
Tensor ne(const Tensor& a, double b) { return ne(a, number_like(a, b)); }
Tensor lt(const Tensor& a, double b) { return lt(a, number_like(a, b)); }
Tensor le(const Tensor& a, double b) { return le(a, number_like(a, b)); }
Tensor gt(const Tensor& a, double b) { return gt(a, number_like(a, b)); }
Tensor ge(const Tensor& a, double b) { return ge(a, number_like(a, b)); }

}  // namespace weft
