// Cases of dropout. Every run starts the generator anew, so that the mask is the same each time.
#include "autograd/ops/dropout.h"

#include "tensor/random.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

}  // namespace

OpCases dropout_cases() {
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
             for (int64_t i = 0; i < y.numel(); ++i) {
               const uint32_t word = philox(11, static_cast<uint64_t>(i / 4))[static_cast<size_t>(i % 4)];
               y[i] = static_cast<double>(word) * 0x1p-32 < 0.3 ? 0 : x[0][i] / 0.7;
             }
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{1 << 20}}}},
  };
}

}  // namespace weft::testing
