// Cases of softmax and its logarithm.
#include "autograd/ops/softmax.h"

#include <cmath>

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

/// Along `dim` of x, by the definition.
Ref reference(const Ref& x, int64_t dim, bool logarithm) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= x.sizes[d];
  for (int64_t d = dim + 1; d < x.sizes.size(); ++d) inner *= x.sizes[d];
  const int64_t n = x.sizes[dim];
  Ref y(x.sizes);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      double total = 0;
      for (int64_t k = 0; k < n; ++k) total += std::exp(x[(o * n + k) * inner + i]);
      for (int64_t k = 0; k < n; ++k) {
        const double p = std::exp(x[(o * n + k) * inner + i]) / total;
        y[(o * n + k) * inner + i] = logarithm ? std::log(p) : p;
      }
    }
  return y;
}

OpCase along(std::string name, bool logarithm, Shape sizes, int64_t dim, std::vector<In> bench = {}) {
  return {.name = std::move(name),
          .inputs = {{sizes}},
          .run = [=](const std::vector<Tensor>& x) { return logarithm ? log_softmax(x[0], dim) : softmax(x[0], dim); },
          .reference = [=](const std::vector<Ref>& x) { return reference(x[0], dim, logarithm); },
          .dtypes = {f32, f64, bf16, f16},
          .bench = std::move(bench)};
}

}  // namespace

OpCases softmax_cases() {
  OpCase long_rows = along("log_softmax/long_rows", true, {2, 1100}, 1, {In{{64, 20000}}});
  long_rows.gradient = false;  // the sum of so many logarithms has too few digits left for differences
  OpCases cases{along("softmax", false, {3, 7}, 1, {In{{2048, 256}}}),
                along("softmax/long_rows", false, {2, 1100}, 1, {In{{64, 20000}}}),
                along("softmax/middle", false, {3, 5, 70}, 1, {In{{16, 64, 1024}}}),
                along("softmax/first", false, {6, 4}, 0),
                along("log_softmax", true, {3, 7}, 1, {In{{2048, 256}}}),
                along("log_softmax/lanes_and_rest", true, {2, 70}, 1),
                along("log_softmax/middle", true, {2, 3, 66}, 1),
                along("softmax/packs", false, {3, 64}, 1),
                along("softmax/more_packs", false, {2, 304}, 1),
                along("softmax/odd_rows", false, {2, 333}, 1),
                long_rows};
  // Too many elements for finite differences.
  for (OpCase c :
       {along("softmax/columns", false, {150, 40}, 0), along("log_softmax/columns", true, {2, 60, 5}, 1),
        along("softmax/most_packs", false, {2, 600}, 1), along("softmax/longest_rows", false, {1, 8200}, 1),
        along("log_softmax/longest_rows", true, {1, 8200}, 1), along("softmax/longest_odd_rows", false, {1, 2055}, 1),
        along("log_softmax/longest_odd_rows", true, {1, 2055}, 1)}) {
    c.differences = false;
    // A sum of thousands times e^y, whose y was rounded at -9: the reason why Autocast computes it in f32.
    c.half_gradient = !c.name.starts_with("log_softmax/longest");
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace weft::testing
