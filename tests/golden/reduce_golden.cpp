// Golden rows of reduce and matmul.
#include <gtest/gtest.h>

#include <limits>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/reduce.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

/// The four ways every reduction is recorded in.
void add_reduction(std::vector<GoldenRow>& rows, const std::string& name,
                   Tensor (*op)(const Tensor&, const Shape&, bool)) {
  rows.push_back({name + "/all", [op](Inputs in) { return op(in[0], {}, false); }});
  rows.push_back({name + "/last", [op](Inputs in) { return op(in[0], {-1}, false); }});
  rows.push_back({name + "/middle", [op](Inputs in) { return op(in[0], {1}, false); }});
  rows.push_back({name + "/outer_keepdim", [op](Inputs in) { return op(in[0], {0, 2}, true); }});
}

TEST(Golden, reduce) {
  std::vector<GoldenRow> rows = {
      {"max/ties", [](Inputs in) { return max(in[0], {1}); }},
      {"max/with_index",
       [](Inputs in) -> Results {
         const ValueIndex found = max_with_index(in[0], 1);
         return {found.values, found.indices};
       }},
      {"min/with_index",
       [](Inputs in) -> Results {
         const ValueIndex found = min_with_index(in[0], -1, true);
         return {found.values, found.indices};
       }},
      {"prod/all", [](Inputs in) { return prod(in[0]); }},
      {"prod/last", [](Inputs in) { return prod(in[0], {-1}); }},
      {"prod/zeros", [](Inputs in) { return prod(in[0], {-1}); }},
      {"deviation/all", [](Inputs in) { return deviation(in[0]); }},
      {"deviation/last", [](Inputs in) { return deviation(in[0], {-1}, {.correction = 0}); }},
      {"var/offset", [](Inputs in) { return var(in[0], {-1}, {.correction = 0}); }},
      {"argmax/last", [](Inputs in) { return argmax(in[0], -1); }},
      {"argmax/first_keepdim", [](Inputs in) { return argmax(in[0], 0, true); }},
      {"argmin/last", [](Inputs in) { return argmin(in[0], -1); }},
      {"argmin/first_keepdim", [](Inputs in) { return argmin(in[0], 0, true); }},
      {"any/last", [](Inputs in) { return any(in[0], {-1}); }},
      {"any/all", [](Inputs in) { return any(in[0]); }},
      {"all/last", [](Inputs in) { return all(in[0], {-1}); }},
      {"all/all", [](Inputs in) { return all(in[0]); }},
      {"norm/infinity", [](Inputs in) { return norm(in[0], {-1}, {.p = std::numeric_limits<double>::infinity()}); }},
      {"norm/zero", [](Inputs in) { return norm(in[0], {-1}); }},
      {"cumsum/last", [](Inputs in) { return cumsum(in[0], -1); }},
      {"cumsum/first", [](Inputs in) { return cumsum(in[0], 0); }},
      // The result, about 1100, is rounded to 6e-5 in f32, and the gradient e^(x - result) has that error.
      {"logsumexp/large", [](Inputs in) { return logsumexp(in[0], {-1}); }, {.f64 = 1e-12, .f32 = 1e-4}},
  };
  add_reduction(rows, "sum", sum);
  add_reduction(rows, "mean", mean);
  add_reduction(rows, "max", max);
  add_reduction(rows, "min", min);
  add_reduction(rows, "logsumexp", logsumexp);
  for (const double correction : {0.0, 1.0}) {
    const std::string suffix = correction == 0 ? "_correction0" : "_correction1";
    rows.push_back({"var/all" + suffix, [=](Inputs in) { return var(in[0], {}, {.correction = correction}); }});
    rows.push_back({"var/last" + suffix, [=](Inputs in) { return var(in[0], {-1}, {.correction = correction}); }});
    rows.push_back({"var/outer_keepdim" + suffix, [=](Inputs in) {
                      return var(in[0], {0, 2}, {.correction = correction, .keepdim = true});
                    }});
  }
  for (const int p : {1, 2, 3}) {
    const std::string name = "norm/order" + std::to_string(p);
    const NormOptions options{.p = static_cast<double>(p)};
    rows.push_back({name + "_all", [=](Inputs in) { return norm(in[0], {}, options); }});
    rows.push_back({name + "_last", [=](Inputs in) { return norm(in[0], {-1}, options); }});
  }
  check_golden("reduce", rows);
}

Tensor product(Inputs in) { return matmul(in[0], in[1]); }
Tensor product_with_bias(Inputs in) { return linear(in[0], in[1], in[2]); }

TEST(Golden, matmul) {
  check_golden("matmul", {
                             {"plain", product},
                             {"batched", product},
                             {"batch_broadcast", product},
                             {"shared_right", product},
                             {"shared_left", product},
                             {"transposed_left", [](Inputs in) { return matmul(in[0].t(), in[1]); }},
                             {"transposed_right", [](Inputs in) { return matmul(in[0], in[1].t()); }},
                             {"transposed_both", [](Inputs in) { return matmul(in[0].t(), in[1].t()); }},
                             {"one_row", product},
                             {"vector_left", product},
                             {"vector_right", product},
                             {"linear/bias", product_with_bias},
                             {"linear/no_bias", [](Inputs in) { return linear(in[0], in[1]); }},
                             {"linear/three_dims", product_with_bias},
                             {"linear/relu", [](Inputs in) { return linear(in[0], in[1], in[2], Activation::relu); }},
                         });
}

}  // namespace
}  // namespace weft::testing
