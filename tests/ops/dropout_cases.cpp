// Cases of dropout. Every run starts the generator anew, so that the mask is the same each time.
#include "autograd/ops/dropout.h"

#include "tensor/random.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

/// What dropout of x with seed 11 gives element i.
double dropped(double x, int64_t i, double p) {
  if (p == 1) return 0;
  const uint32_t word = philox(11, static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
  return static_cast<double>(word) * 0x1p-32 < p ? 0 : x / (1 - p);
}

/// residual + dropout(x + bias), from inputs in this order; without a bias where there are two.
Ref dropout_add_reference(const Refs& in, double p) {
  const Ref &x = in[0], &residual = in.back();
  Ref y(x.sizes);
  const int64_t columns = x.sizes[x.sizes.size() - 1];
  for (int64_t i = 0; i < y.numel(); ++i)
    y[i] = residual[i] + dropped(x[i] + (in.size() > 2 ? in[1][i % columns] : 0), i, p);
  return y;
}

OpCase dropout_add_case(const char* name, const Shape& sizes, double p, bool biased, bool training) {
  std::vector<In> inputs = {{sizes}};
  if (biased) inputs.push_back({{sizes[sizes.size() - 1]}});
  inputs.push_back({sizes});
  return {.name = name,
          .inputs = inputs,
          .run =
              [=](const Tensors& x) {
                manual_seed(11);
                return dropout_add(x[0], biased ? x[1] : Tensor(), x.back(), p, training);
              },
          .reference = [=](const Refs& x) { return dropout_add_reference(x, training ? p : 0); },
          .dtypes = {f32, f64, bf16, f16}};
}

}  // namespace

OpCases dropout_cases() {
  OpCase wide = dropout_add_case("dropout_add", {3, 5, 24}, 0.3, true, true);
  wide.bench = {{{4096, 768}}, {{768}}, {{4096, 768}}};
  return {
      {.name = "dropout",
       .inputs = {{{3, 5, 23}}},
       .run =
           [](const Tensors& x) {
             manual_seed(11);
             return dropout(x[0], 0.3, true);
           },
       .reference =
           [](const Refs& x) {
             Ref y(x[0].sizes);
             for (int64_t i = 0; i < y.numel(); ++i) y[i] = dropped(x[0][i], i, 0.3);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{1 << 20}}}},
      wide,
      dropout_add_case("dropout_add/odd_columns", {7, 43}, 0.3, true, true),
      dropout_add_case("dropout_add/few_columns", {40, 3}, 0.3, true, true),
      dropout_add_case("dropout_add/no_bias", {5, 67}, 0.6, false, true),
      dropout_add_case("dropout_add/evaluation", {3, 29}, 0.3, true, false),
      dropout_add_case("dropout_add/all_dropped", {3, 10}, 1, true, true),
  };
}

}  // namespace weft::testing
