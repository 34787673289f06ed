// Cases of embedding.
#include "autograd/ops/embedding.h"

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

Ref rows_by_id(const Refs& x) {
  const int64_t width = x[0].sizes[1];
  Shape sizes = x[1].sizes;
  sizes.push_back(width);
  Ref y(sizes);
  for (int64_t i = 0; i < x[1].numel(); ++i)
    for (int64_t c = 0; c < width; ++c) y[i * width + c] = x[0](static_cast<int64_t>(x[1][i]), c);
  return y;
}

}  // namespace

OpCases embedding_cases() {
  return {
      {.name = "embedding",
       .inputs = {{{6, 5}}, In::indices({3, 4}, 6)},
       .run = [](const Tensors& x) { return embedding(x[0], x[1]); },
       .reference = rows_by_id,
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{20000, 64}}, In::indices({64, 200}, 20000)}},
      // Wide rows and few of them: the gradient goes through blocks of columns, and one row takes most positions.
      {.name = "embedding/hot_row",
       .inputs = {{{2, 70}}, In::indices({9}, 2)},
       .run = [](const Tensors& x) { return embedding(x[0], x[1]); },
       .reference = rows_by_id},
      // As many ids as a device sorts: some rows are named often, some not at all.
      {.name = "embedding/many_ids",
       .inputs = {{{300, 8}}, In::indices({5, 60}, 300)},
       .run = [](const Tensors& x) { return embedding(x[0], x[1]); },
       .reference = rows_by_id,
       .differences = false,  // too many of them
       .dtypes = {f32, f64, bf16, f16}},
      {.name = "embedding/one_row_of_all",
       .inputs = {{{1, 4}}, In::indices({1100}, 1)},
       .run = [](const Tensors& x) { return embedding(x[0], x[1]); },
       .reference = rows_by_id},
  };
}

}  // namespace weft::testing
