// Reductions: value and gradient.
#include "autograd/ops/reduce.h"

#include <array>
#include <cmath>
#include <limits>

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// Which dimensions go, and the sizes with and without them.
struct Reduced {
  Shape kept;    // 1 for a reduced dimension
  Shape result;  // what the caller sees
  int64_t count = 1;

  Reduced(const char* op, const Tensor& x, const Shape& dims, bool keepdim) : kept(x.sizes()) {
    if (dims.empty()) {
      kept = Shape::filled(x.dim(), 1);
      result = keepdim ? kept : Shape();
      count = x.numel();
      return;
    }
    std::array<bool, kMaxDims> gone{};
    for (int64_t dim : dims) {
      const int64_t d = wrap_dim(op, dim, x.dim());
      WEFT_CHECK(!gone[static_cast<size_t>(d)], op, "the dimensions {} name {} twice", str(dims), d);
      gone[static_cast<size_t>(d)] = true;
      count *= x.sizes()[d];
      kept[d] = 1;
    }
    for (int64_t d = 0; d < x.dim(); ++d)
      if (keepdim || !gone[static_cast<size_t>(d)]) result.push_back(kept[d]);
  }
};

/// kernel(x, extra…, out) into a new tensor of `sizes`.
template <class Kernel, class... Extra>
Tensor reduced(const Kernel& kernel, const Tensor& x, const Shape& sizes, DType dtype, Extra... extra) {
  Tensor out = empty(sizes, {dtype, x.device()});
  kernel(x, extra..., out);
  return out;
}

Tensor shaped(const Tensor& out, const Shape& sizes) { return out.sizes() == sizes ? out : raw::reshape(out, sizes); }

/// A gradient of the result, at all the places that were reduced into it.
Tensor spread(const Tensor& dy, const Shape& kept, const Shape& sizes) { return raw::expand(shaped(dy, kept), sizes); }

DType sum_dtype(const Tensor& x) { return is_floating(x.dtype()) ? x.dtype() : DType::i64; }

void check_floating(const char* op, const Tensor& x) {
  WEFT_CHECK(is_floating(x.dtype()), op, "wants a floating dtype, got {} {}", name(x.dtype()), str(x.sizes()));
}

}  // namespace

Tensor sum(const Tensor& x, const Shape& dims, bool keepdim) {
  if (autocast::widens(x)) return sum(autocast::widened(x), dims, keepdim);
  const Reduced r("sum", x, dims, keepdim);
  return record("sum", {x}, shaped(reduced(kernels::sum, x, r.kept, sum_dtype(x)), r.result),
                [kept = r.kept, sizes = x.sizes()](const Tensor& dy) -> Grads { return {spread(dy, kept, sizes)}; });
}

Tensor mean(const Tensor& x, const Shape& dims, bool keepdim) {
  if (autocast::widens(x)) return mean(autocast::widened(x), dims, keepdim);
  check_floating("mean", x);
  const Reduced r("mean", x, dims, keepdim);
  return record("mean", {x}, shaped(reduced(kernels::mean, x, r.kept, x.dtype()), r.result),
                [kept = r.kept, sizes = x.sizes(), scale = 1 / static_cast<double>(r.count)](
                    const Tensor& dy) -> Grads { return {spread(dy * scale, kept, sizes)}; });
}

Tensor prod(const Tensor& x, const Shape& dims, bool keepdim) {
  if (autocast::widens(x)) return prod(autocast::widened(x), dims, keepdim);
  const Reduced r("prod", x, dims, keepdim);
  return record("prod", {x}, shaped(reduced(kernels::prod, x, r.kept, sum_dtype(x)), r.result),
                [x = SavedTensor(x), kept = r.kept](const Tensor& dy) -> Grads {
                  // The product of the others: of all but the zeros, over x where there is none, and at the zero where
                  // it is the only one.
                  const Tensor zero = eq(x(), 0), filled = where(zero, ones_like(x()), x());
                  const Tensor zeros_in = reduced(kernels::sum, zero, kept, x().dtype());
                  const Tensor others =
                      raw::expand(reduced(kernels::prod, filled, kept, x().dtype()), x().sizes()) / filled;
                  const Tensor counts = raw::expand(zeros_in, x().sizes()) - zero.to(x().dtype());
                  return {spread(dy, kept, x().sizes()) * where(eq(counts, 0), others, zeros_like(others))};
                });
}

namespace {

/// d var / d x, times `scale` (of kept sizes): scale · 2 (x - mean) / (n - correction).
Tensor variance_gradient(const Tensor& x, const Tensor& mean, const Tensor& scale, double divisor) {
  return (x - mean) * (scale * (2 / divisor));
}

}  // namespace

Tensor var(const Tensor& x, const Shape& dims, const VarOptions& options) {
  if (autocast::widens(x)) return var(autocast::widened(x), dims, options);
  check_floating("var", x);
  const Reduced r("var", x, dims, options.keepdim);
  Tensor v = empty(r.kept, {x.dtype(), x.device()}), m = needs_grad(x) ? empty_like(v) : Tensor();
  kernels::var(x, options.correction, v, m);
  return record("var", {x}, shaped(v, r.result),
                [x = SavedTensor(x), m, kept = r.kept, divisor = static_cast<double>(r.count) - options.correction](
                    const Tensor& dy) -> Grads { return {variance_gradient(x(), m, shaped(dy, kept), divisor)}; });
}

Tensor deviation(const Tensor& x, const Shape& dims, const VarOptions& options) {
  if (autocast::widens(x)) return deviation(autocast::widened(x), dims, options);
  check_floating("deviation", x);
  const Reduced r("deviation", x, dims, options.keepdim);
  Tensor v = empty(r.kept, {x.dtype(), x.device()}), m = needs_grad(x) ? empty_like(v) : Tensor();
  kernels::var(x, options.correction, v, m);
  kernels::sqrt(v, v);
  return record("deviation", {x}, shaped(v, r.result),
                [x = SavedTensor(x), m, s = SavedTensor(v),
                 divisor = static_cast<double>(r.count) - options.correction](const Tensor& dy) -> Grads {
                  const Tensor slope = where(eq(s(), 0), zeros_like(s()), 0.5 / s());
                  return {variance_gradient(x(), m, shaped(dy, s().sizes()) * slope, divisor)};
                });
}

Tensor norm(const Tensor& x, const Shape& dims, const NormOptions& options) {
  if (autocast::widens(x)) return norm(autocast::widened(x), dims, options);
  check_floating("norm", x);
  WEFT_CHECK(options.p > 0, "norm", "p must be above 0, got {}", options.p);
  if (std::isinf(options.p)) return max(abs(x), dims, options.keepdim);
  const Reduced r("norm", x, dims, options.keepdim);
  Tensor y = empty(r.kept, {x.dtype(), x.device()});
  kernels::norm(x, options.p, y);
  return record("norm", {x}, shaped(y, r.result),
                [x = SavedTensor(x), y = SavedTensor(y), p = options.p](const Tensor& dy) -> Grads {
                  const Tensor none = eq(y(), 0), g = shaped(dy, y().sizes());
                  if (p == 2) return {x() * where(none, zeros_like(y()), g / y())};
                  if (p == 1) return {sign(x()) * g};
                  // sign(x) |x|^(p - 1) / y^(p - 1), which is 0 at x = 0 even where p < 1.
                  const Tensor share = pow(abs(x()) / where(none, ones_like(y()), y()), p - 1);
                  return {where(eq(x(), 0), zeros_like(x()), sign(x()) * share) * g};
                });
}

Tensor logsumexp(const Tensor& x, const Shape& dims, bool keepdim) {
  if (autocast::widens(x)) return logsumexp(autocast::widened(x), dims, keepdim);
  check_floating("logsumexp", x);
  const Reduced r("logsumexp", x, dims, keepdim);
  Tensor y;
  {
    const NoGrad no_grad;
    // The largest value, or 0 where that is infinite: x - infinity would be NaN.
    Tensor largest = r.count == 0 ? zeros(r.kept, {x.dtype(), x.device()}) : max(x, dims, true);
    largest = where(eq(abs(largest), std::numeric_limits<double>::infinity()), zeros_like(largest), largest);
    y = log(reduced(kernels::sum, exp(x - largest), r.kept, x.dtype())) + largest;
  }
  return record("logsumexp", {x}, shaped(y, r.result),
                [x = SavedTensor(x), y = SavedTensor(y)](const Tensor& dy) -> Grads {
                  const Tensor nothing = eq(y(), -std::numeric_limits<double>::infinity());
                  return {exp(x() - where(nothing, zeros_like(y()), y())) * shaped(dy, y().sizes())};
                });
}

namespace {

/// The extreme along one dimension and where it is.
ValueIndex extreme_along(const char* op, const Tensor& x, int64_t dim, bool largest, bool keepdim) {
  const int64_t d = wrap_dim(op, dim, x.dim());
  WEFT_CHECK(x.sizes()[d] > 0, op, "dimension {} of {} is empty: there is no value to choose", d, str(x.sizes()));
  Shape kept = x.sizes();
  kept[d] = 1;
  Tensor values = empty(kept, {x.dtype(), x.device()}), indices = empty(kept, {DType::i64, x.device()});
  kernels::extreme(x, d, largest, values, indices);
  Shape result = kept;
  if (!keepdim) result.erase(d);
  Tensor y = record(op, {x}, shaped(values, result), [indices, sizes = x.sizes(), d](const Tensor& dy) -> Grads {
    Tensor dx = empty(sizes, {dy.dtype(), dy.device()});
    kernels::extreme_grad(shaped(dy, indices.sizes()), indices, d, dx);
    return {dx};
  });
  return {y, shaped(indices, result)};
}

/// x with the reduced dimensions merged into one at the end.
Tensor merged_at_end(const char* op, const Tensor& x, const Shape& dims) {
  if (dims.empty()) return x.reshape({x.numel()});
  std::array<bool, kMaxDims> gone{};
  for (int64_t d : dims) gone[static_cast<size_t>(wrap_dim(op, d, x.dim()))] = true;
  Shape order, sizes;
  int64_t merged = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (gone[static_cast<size_t>(d)]) continue;
    order.push_back(d);
    sizes.push_back(x.sizes()[d]);
  }
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (!gone[static_cast<size_t>(d)]) continue;
    order.push_back(d);
    merged *= x.sizes()[d];
  }
  sizes.push_back(merged);
  return x.permute(order).reshape(sizes);
}

Tensor extreme(const char* op, const Tensor& x, const Shape& dims, bool largest, bool keepdim) {
  const Reduced r(op, x, dims, keepdim);
  WEFT_CHECK(r.count > 0, op,
             "{} has no elements along the dimensions {} that are reduced: there is no value to choose", str(x.sizes()),
             dims.empty() ? "(all)" : str(dims));
  if (dims.size() == 1) return extreme_along(op, x, dims[0], largest, keepdim).values;
  const Tensor y = extreme_along(op, merged_at_end(op, x, dims), -1, largest, false).values;
  return y.sizes() == r.result ? y : y.reshape(r.result);
}

Tensor index_of(const char* op, const Tensor& x, bool largest) {
  WEFT_CHECK(x.numel() > 0, op, "{} has no elements: there is no value to choose", str(x.sizes()));
  const NoGrad no_grad;
  return extreme_along(op, raw::reshape(x, {x.numel()}), 0, largest, false).indices;
}

}  // namespace

Tensor max(const Tensor& x, const Shape& dims, bool keepdim) { return extreme("max", x, dims, true, keepdim); }
Tensor min(const Tensor& x, const Shape& dims, bool keepdim) { return extreme("min", x, dims, false, keepdim); }

ValueIndex max_with_index(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along("max", x, dim, true, keepdim);
}
ValueIndex min_with_index(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along("min", x, dim, false, keepdim);
}

Tensor argmax(const Tensor& x) { return index_of("argmax", x, true); }
Tensor argmin(const Tensor& x) { return index_of("argmin", x, false); }
Tensor argmax(const Tensor& x, int64_t dim, bool keepdim) {
  const NoGrad no_grad;
  return extreme_along("argmax", x, dim, true, keepdim).indices;
}
Tensor argmin(const Tensor& x, int64_t dim, bool keepdim) {
  const NoGrad no_grad;
  return extreme_along("argmin", x, dim, false, keepdim).indices;
}

Tensor any(const Tensor& x, const Shape& dims, bool keepdim) {
  const Reduced r("any", x, dims, keepdim);
  return shaped(reduced(kernels::any, x, r.kept, DType::boolean), r.result);
}

Tensor all(const Tensor& x, const Shape& dims, bool keepdim) {
  const Reduced r("all", x, dims, keepdim);
  return shaped(reduced(kernels::all, x, r.kept, DType::boolean), r.result);
}

Tensor cumsum(const Tensor& x, int64_t dim) {
  if (autocast::widens(x)) return cumsum(autocast::widened(x), dim);
  const int64_t d = wrap_dim("cumsum", dim, x.dim());
  return record(
      "cumsum", {x}, reduced(kernels::cumsum, x, x.sizes(), sum_dtype(x), d, false),
      [d](const Tensor& dy) -> Grads { return {reduced(kernels::cumsum, dy, dy.sizes(), dy.dtype(), d, true)}; });
}

}  // namespace weft
