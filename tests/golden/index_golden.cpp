// Golden rows of index, embedding and dropout.
#include <gtest/gtest.h>

#include "autograd/ops/dropout.h"
#include "autograd/ops/embedding.h"
#include "autograd/ops/index.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

Results ranked(const Ranked& r) { return {r.values, r.indices}; }

TEST(Golden, index) {
  const std::vector<GoldenRow> rows = {
      {"gather/first", [](Inputs in) { return gather(in[0], 0, in[1]); }},
      {"gather/last", [](Inputs in) { return gather(in[0], -1, in[1]); }},
      {"scatter_add/first", [](Inputs in) { return scatter_add(in[0], 0, in[1], in[2]); }},
      {"scatter_add/last", [](Inputs in) { return scatter_add(in[0], 1, in[1], in[2]); }},
      {"index_select/first", [](Inputs in) { return index_select(in[0], 0, in[1]); }},
      {"index_select/middle", [](Inputs in) { return index_select(in[0], 1, in[1]); }},
      {"index_add/first", [](Inputs in) { return index_add(in[0], 0, in[1], in[2]); }},
      {"index_add/last", [](Inputs in) { return index_add(in[0], 1, in[1], in[2]); }},
      {"cat/first", [](Inputs in) { return cat(in, 0); }},
      {"cat/last", [](Inputs in) { return cat(in, -1); }},
      {"stack/first", [](Inputs in) { return stack(in, 0); }},
      {"stack/last", [](Inputs in) { return stack(in, -1); }},
      {"split/first", [](Inputs in) { return split(in[0], 2, 0); }},
      {"split/sizes",
       [](Inputs in) {
         return split_sizes(in[0], {1, 3, 2}, 1);
       }},
      {"chunk", [](Inputs in) { return chunk(in[0], 3, 1); }},
      {"unbind", [](Inputs in) { return unbind(in[0], 1); }},
      {"pad/last",
       [](Inputs in) {
         return pad(in[0], {{1, 2}}, 0.5);
       }},
      {"pad/image",
       [](Inputs in) {
         return pad(in[0], {{2, 1}, {1, 0}});
       }},
      {"masked_fill", [](Inputs in) { return masked_fill(in[0], in[1].to(boolean), -1.5); }},
      {"masked_fill/broadcast", [](Inputs in) { return masked_fill(in[0], in[1].to(boolean), -1.5); }},
      {"topk/largest", [](Inputs in) { return ranked(topk(in[0], 3)); }},
      {"topk/smallest_first", [](Inputs in) { return ranked(topk(in[0], 2, {.dim = 0, .largest = false})); }},
      {"sort/rising", [](Inputs in) { return ranked(sort(in[0])); }},
      {"sort/falling_first", [](Inputs in) { return ranked(sort(in[0], {.dim = 0, .descending = true})); }},
      {"flip", [](Inputs in) { return flip(in[0], 1); }},
      {"roll", [](Inputs in) { return roll(in[0], 2, 1); }},
      {"tril", [](Inputs in) { return tril(in[0], 1); }},
      {"triu", [](Inputs in) { return triu(in[0], -1); }},
      {"one_hot", [](Inputs in) { return one_hot(in[0], 5, i64); }},
  };
  check_golden("index", rows);
}

TEST(Golden, embedding) {
  check_golden("embedding", {
                                {"plain", [](Inputs in) { return embedding(in[0], in[1]); }},
                                {"two_dims", [](Inputs in) { return embedding(in[0], in[1]); }},
                                {"padding", [](Inputs in) { return embedding(in[0], in[1], 2); }},
                            });
}

TEST(Golden, dropout) {
  check_golden("dropout", {
                              {"keep_all", [](Inputs in) { return dropout(in[0], 0, true); }},
                              {"drop_all", [](Inputs in) { return dropout(in[0], 1, true); }},
                              {"eval", [](Inputs in) { return dropout(in[0], 0.5, false); }},
                          });
}

}  // namespace
}  // namespace weft::testing
