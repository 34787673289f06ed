// Cases of the reductions.
#include "autograd/ops/reduce.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Values = std::vector<double>;

/// The values of x that fall on each output, in row-major order, through f.
Ref over(const Ref& x, const Shape& dims, bool keepdim, const std::function<double(const Values&)>& f) {
  const int64_t n = x.sizes.size();
  auto reduced = [&](int64_t d) {
    return dims.empty() || std::ranges::any_of(dims, [&](int64_t k) { return (k < 0 ? k + n : k) == d; });
  };
  Shape sizes;
  for (int64_t d = 0; d < n; ++d)
    if (!reduced(d))
      sizes.push_back(x.sizes[d]);
    else if (keepdim)
      sizes.push_back(1);
  Ref y(sizes);
  std::vector<Values> sets(static_cast<size_t>(y.numel()));
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t at = 0, step = 1;
    for (int64_t d = n - 1, rest = i; d >= 0; rest /= x.sizes[d], --d) {
      if (reduced(d)) continue;
      at += rest % x.sizes[d] * step;
      step *= x.sizes[d];
    }
    sets[static_cast<size_t>(at)].push_back(x[i]);
  }
  for (int64_t i = 0; i < y.numel(); ++i) y[i] = f(sets[static_cast<size_t>(i)]);
  return y;
}

using Op = Tensor (*)(const Tensor&, const Shape&, bool);

OpCase reduction(std::string name, Op op, Shape sizes, Shape dims, double (*f)(const Values&), bool keepdim = false,
                 In in = {}, std::vector<In> bench = {}) {
  in.sizes = sizes;
  return {.name = std::move(name),
          .inputs = {in},
          .run = [=](const Tensors& x) { return op(x[0], dims, keepdim); },
          .reference = [=](const std::vector<Ref>& x) { return over(x[0], dims, keepdim, f); },
          .dtypes = {f32, f64, bf16, f16},
          .bench = std::move(bench)};
}

double total(const Values& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double average(const Values& v) { return total(v) / static_cast<double>(v.size()); }
double product(const Values& v) { return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>()); }
double largest(const Values& v) { return *std::ranges::max_element(v); }
double smallest(const Values& v) { return *std::ranges::min_element(v); }
double variance(const Values& v) {
  double squares = 0;
  for (double x : v) squares += (x - average(v)) * (x - average(v));
  return squares / static_cast<double>(v.size() - 1);
}
double plain_variance(const Values& v) {
  return variance(v) * static_cast<double>(v.size() - 1) / static_cast<double>(v.size());
}
double spread(const Values& v) { return std::sqrt(variance(v)); }
double log_sum(const Values& v) {
  double s = 0;
  for (double x : v) s += std::exp(x);
  return std::log(s);
}
template <int p>
double length(const Values& v) {
  double s = 0;
  for (double x : v) s += std::pow(std::fabs(x), p);
  return std::pow(s, 1.0 / p);
}
double widest(const Values& v) { return std::max(largest(v), -smallest(v)); }
double any_positive(const Values& v) {
  return std::ranges::any_of(v, [](double x) { return x != 0; });
}
double all_nonzero(const Values& v) {
  return std::ranges::all_of(v, [](double x) { return x != 0; });
}

Tensor var_of(const Tensor& x, const Shape& dims, bool keepdim) { return var(x, dims, {.keepdim = keepdim}); }
Tensor plain_var_of(const Tensor& x, const Shape& dims, bool keepdim) {
  return var(x, dims, {.correction = 0, .keepdim = keepdim});
}
Tensor deviation_of(const Tensor& x, const Shape& dims, bool keepdim) {
  return deviation(x, dims, {.keepdim = keepdim});
}
template <int p>
Tensor norm_of(const Tensor& x, const Shape& dims, bool keepdim) {
  return norm(x, dims, {.p = p == 0 ? INFINITY : p, .keepdim = keepdim});
}

const In distinct{.distinct = true};

OpCase without_gradient(OpCase c) {
  c.gradient = false;
  return c;
}

/// For inputs of so many elements that finite differences would take long.
OpCase without_differences(OpCase c) {
  c.differences = false;
  return c;
}

OpCase running(const char* name, const Shape& sizes, int64_t dim, std::vector<In> bench = {}) {
  return {.name = name,
          .inputs = {{sizes}},
          .run = [=](const Tensors& x) { return cumsum(x[0], dim); },
          .reference =
              [=](const std::vector<Ref>& x) {
                Ref y = x[0];
                const int64_t step = contiguous_strides(sizes)[dim];
                for (int64_t i = 0; i < y.numel(); ++i)
                  if (i / step % sizes[dim] > 0) y[i] += y[i - step];
                return y;
              },
          .bench = std::move(bench)};
}

OpCase index_case(const char* name, Tensor (*op)(const Tensor&, int64_t, bool), int64_t dim, const Shape& sizes,
                  bool most) {
  return {.name = name,
          .inputs = {{.sizes = sizes, .distinct = true}},
          .run = [=](const Tensors& x) { return op(x[0], dim, false); },
          .reference =
              [=](const std::vector<Ref>& x) {
                return over(x[0], {dim}, false, [most](const Values& v) {
                  const auto at = most ? std::ranges::max_element(v) : std::ranges::min_element(v);
                  return static_cast<double>(at - v.begin());
                });
              },
          .gradient = false,
          .dtypes = {f32, f64},
          .bench = {In{{1024, 1024}}}};
}

}  // namespace

OpCases reduce_cases() {
  return {
      reduction("sum", sum, {3, 5, 7}, {}, total, false, {}, {In{{1 << 20}}}),
      reduction("sum/rows", sum, {6, 67}, {-1}, total, false, {}, {In{{4096, 256}}}),
      reduction("sum/columns", sum, {67, 6}, {0}, total, true, {}, {In{{4096, 256}}}),
      reduction("sum/middle", sum, {3, 9, 5}, {1}, total),
      reduction("sum/channels", sum, {3, 4, 5, 2}, {0, 2, 3}, total),
      reduction("sum/few_a_row", sum, {300, 5}, {1}, total),
      reduction("sum/rows_of_packs", sum, {3, 512}, {1}, total),
      without_differences(reduction("sum/long_rows", sum, {3, 4104}, {1}, total)),
      without_differences(reduction("sum/parts_of_rows", sum, {2, 5001}, {1}, total)),
      without_differences(reduction("sum/parts_of_all", sum, {16391}, {}, total)),
      without_differences(
          reduction("sum/parts_of_columns", sum, {130, 132}, {0}, total, false, In{.low = -1, .high = 1})),
      reduction("sum/packs_of_channels", sum, {3, 5, 4, 16}, {0, 2, 3}, total),
      reduction("mean", mean, {4, 9}, {}, average),
      reduction("mean/rows", mean, {4, 9}, {1}, average, true),
      reduction("mean/outer_and_inner", mean, {4, 3, 5}, {0, 2}, average),
      reduction("prod", prod, {3, 4}, {1}, product, false, In{.away_from_zero = true}),
      reduction("var", var_of, {3, 5, 7}, {}, variance),
      reduction("var/columns", var_of, {40, 3}, {0}, variance, false, {}, {In{{4096, 256}}}),
      reduction("var/rows", var_of, {3, 50}, {1}, variance, true, {}, {In{{4096, 256}}}),
      reduction("var/plain", plain_var_of, {6, 5}, {1}, plain_variance),
      without_differences(reduction("var/parts_of_rows", var_of, {2, 5001}, {1}, variance)),
      without_differences(reduction("var/parts_of_columns", var_of, {130, 132}, {0}, variance)),
      reduction("deviation", deviation_of, {4, 6}, {1}, spread),
      reduction("norm", norm_of<2>, {4, 6}, {}, length<2>, false, {}, {In{{1 << 20}}}),
      reduction("norm/rows", norm_of<2>, {4, 6}, {1}, length<2>),
      reduction("norm/absolute", norm_of<1>, {4, 6}, {0}, length<1>, true, In{.away_from_zero = true}),
      reduction("norm/cube", norm_of<3>, {4, 6}, {1}, length<3>, false, In{.away_from_zero = true}),
      reduction("norm/largest", norm_of<0>, {4, 6}, {1}, widest, false, In{.low = 0.5, .high = 2, .distinct = true}),
      reduction("logsumexp", logsumexp, {4, 6}, {1}, log_sum),
      reduction("logsumexp/all", logsumexp, {4, 6}, {}, log_sum),
      reduction("logsumexp/columns", logsumexp, {4, 6}, {0}, log_sum, true),
      reduction("max", max, {4, 6}, {}, largest, false, distinct),
      reduction("max/rows", max, {3, 700}, {1}, largest, false, distinct, {In{{4096, 256}}}),
      reduction("max/columns", max, {7, 6}, {0}, largest, true, distinct, {In{{4096, 256}}}),
      reduction("max/outer_and_inner", max, {3, 4, 5}, {0, 2}, largest, true, distinct),
      reduction("min", min, {4, 6}, {}, smallest, false, distinct),
      reduction("min/rows", min, {3, 700}, {1}, smallest, false, distinct),
      reduction("min/middle", min, {3, 5, 4}, {1}, smallest, false, distinct),
      index_case("argmax/rows", argmax, 1, {5, 600}, true),
      index_case("argmax/columns", argmax, 0, {60, 5}, true),
      index_case("argmin/rows", argmin, 1, {5, 600}, false),
      index_case("argmin/middle", argmin, 1, {3, 6, 4}, false),
      index_case("argmax/parts_of_rows", argmax, 1, {2, 5001}, true),
      index_case("argmax/parts_of_columns", argmax, 0, {130, 132}, true),
      without_gradient(reduction("any/rows", any, {3, 40}, {1}, any_positive, false, In{.kind = In::boolean})),
      without_gradient(reduction("all/columns", all, {4, 3, 40}, {0}, all_nonzero, false, In{.kind = In::boolean})),
      without_gradient(reduction("any", any, {8, 3}, {1}, any_positive, false, In{.kind = In::boolean})),
      without_gradient(reduction("all", all, {8, 3}, {1}, all_nonzero, false, In{.kind = In::boolean})),
      running("cumsum", {3, 6, 4}, 1, {In{{1024, 1024}}}),
      running("cumsum/rows", {3, 140}, 1),
      without_differences(running("cumsum/long_rows", {2, 701}, 1)),
      without_differences(running("cumsum/parts_of_rows", {2, 4100}, 1)),
      without_differences(running("cumsum/parts_of_columns", {200, 3}, 0)),
  };
}

}  // namespace weft::testing
