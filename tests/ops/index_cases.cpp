// Cases of the index ops.
#include "autograd/ops/index.h"

#include <algorithm>
#include <numeric>

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

const In kDistinct{.sizes = {3, 7, 4}, .distinct = true};
/// Lines that are sorted where short ones are searched, and one that a block searches.
const In kLong{.sizes = {2, 300, 2}, .distinct = true}, kLongest{.sizes = {1, 2100, 1}, .distinct = true};

/// The positions along dimension 1 of x(i, ·, k), best first.
std::vector<int64_t> ranked(const Ref& x, int64_t i, int64_t k, bool largest) {
  std::vector<int64_t> order(static_cast<size_t>(x.sizes[1]));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(
      order, [&](int64_t a, int64_t b) { return largest ? x(i, a, k) > x(i, b, k) : x(i, a, k) < x(i, b, k); });
  return order;
}

OpCase rank_case(const char* name, Tensor (*run)(const Tensor&), int64_t count, bool largest, bool want_indices,
                 const In& in = kDistinct) {
  return {.name = name,
          .inputs = {in},
          .run = [run](const Tensors& x) { return run(x[0]); },
          .reference =
              [=](const Refs& x) {
                Ref y({x[0].sizes[0], count, x[0].sizes[2]});
                for (int64_t i = 0; i < y.sizes[0]; ++i)
                  for (int64_t k = 0; k < y.sizes[2]; ++k) {
                    const std::vector<int64_t> order = ranked(x[0], i, k, largest);
                    for (int64_t j = 0; j < count; ++j) {
                      const int64_t at = order[static_cast<size_t>(j)];
                      y(i, j, k) = want_indices ? static_cast<double>(at) : x[0](i, at, k);
                    }
                  }
                return y;
              },
          .gradient = !want_indices,
          .differences = in.sizes.numel() < 1000,  // more are too many
          .dtypes = {f32, f64, bf16, f16},
          .bench = {{.sizes = {256, 4096, 1}}}};
}

OpCases by_index() {
  return {
      {.name = "gather/middle_dim",
       .inputs = {{{3, 5, 4}}, In::indices({2, 6, 4}, 5)},
       .run = [](const Tensors& x) { return gather(x[0], 1, x[1]); },
       .reference =
           [](const Refs& x) {
             Ref y({2, 6, 4});
             for (int64_t i = 0; i < 2; ++i)
               for (int64_t j = 0; j < 6; ++j)
                 for (int64_t k = 0; k < 4; ++k) y(i, j, k) = x[0](i, static_cast<int64_t>(x[1](i, j, k)), k);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{4096, 256}}, In::indices({4096, 64}, 256)}},
      {.name = "scatter_add/middle_dim",
       .inputs = {{{3, 5, 4}}, In::indices({2, 6, 4}, 5), {{2, 6, 4}}},
       .run = [](const Tensors& x) { return scatter_add(x[0], 1, x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < 2; ++i)
               for (int64_t j = 0; j < 6; ++j)
                 for (int64_t k = 0; k < 4; ++k) y(i, static_cast<int64_t>(x[1](i, j, k)), k) += x[2](i, j, k);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{4096, 256}}, In::indices({4096, 64}, 256), {{4096, 64}}}},
      {.name = "scatter_add/many_meet",
       .inputs = {{{2, 3}}, In::indices({2, 400}, 3), {{2, 400}}},
       .run = [](const Tensors& x) { return scatter_add(x[0], -1, x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < 2; ++i)
               for (int64_t j = 0; j < 400; ++j) y(i, static_cast<int64_t>(x[1](i, j))) += x[2](i, j);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16}},
      // More of them than a device compares with each other, over more rows than a digit of its sort has.
      {.name = "scatter_add/many_places",
       .inputs = {{{20, 3, 5}}, In::indices({70, 3, 5}, 20), {{70, 3, 5}}},
       .run = [](const Tensors& x) { return scatter_add(x[0], 0, x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < x[2].numel(); ++i) y[static_cast<int64_t>(x[1][i]) * 15 + i % 15] += x[2][i];
             return y;
           },
       .dtypes = {f32, f64, bf16, f16}},
      {.name = "index_select/middle_dim",
       .inputs = {{{3, 5, 4}}, In::indices({7}, 5)},
       .run = [](const Tensors& x) { return index_select(x[0], 1, x[1]); },
       .reference =
           [](const Refs& x) {
             Ref y({3, 7, 4});
             for (int64_t i = 0; i < 3; ++i)
               for (int64_t j = 0; j < 7; ++j)
                 for (int64_t k = 0; k < 4; ++k) y(i, j, k) = x[0](i, static_cast<int64_t>(x[1](j)), k);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{64, 256, 64}}, In::indices({128}, 256)}},
      {.name = "index_select/rows",
       .inputs = {{{5, 40}}, In::indices({9}, 5)},
       .run = [](const Tensors& x) { return index_select(x[0], 0, x[1]); },
       .reference =
           [](const Refs& x) {
             Ref y({9, 40});
             for (int64_t i = 0; i < 9; ++i)
               for (int64_t j = 0; j < 40; ++j) y(i, j) = x[0](static_cast<int64_t>(x[1](i)), j);
             return y;
           }},
      {.name = "index_add/middle_dim",
       .inputs = {{{3, 5, 4}}, In::indices({7}, 5), {{3, 7, 4}}},
       .run = [](const Tensors& x) { return index_add(x[0], 1, x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < 3; ++i)
               for (int64_t j = 0; j < 7; ++j)
                 for (int64_t k = 0; k < 4; ++k) y(i, static_cast<int64_t>(x[1](j)), k) += x[2](i, j, k);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{64, 256, 64}}, In::indices({512}, 256), {{64, 512, 64}}}},
      {.name = "index_add/many",
       .inputs = {{{2, 5, 3}}, In::indices({80}, 5), {{2, 80, 3}}},
       .run = [](const Tensors& x) { return index_add(x[0], 1, x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < 2; ++i)
               for (int64_t j = 0; j < 80; ++j)
                 for (int64_t k = 0; k < 3; ++k) y(i, static_cast<int64_t>(x[1](j)), k) += x[2](i, j, k);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16}},
      {.name = "one_hot",
       .inputs = {In::indices({3, 4}, 6)},
       .run = [](const Tensors& x) { return one_hot(x[0], 6); },
       .reference =
           [](const Refs& x) {
             Ref y({3, 4, 6});
             for (int64_t i = 0; i < 12; ++i) y[i * 6 + static_cast<int64_t>(x[0][i])] = 1;
             return y;
           },
       .gradient = false},
  };
}

OpCases joins() {
  return {
      {.name = "cat",
       .inputs = {{{2, 3, 4}}, {{2, 1, 4}}, {{2, 2, 4}}},
       .run =
           [](const Tensors& x) {
             return cat({x[0], x[1], x[2]}, 1);
           },
       .reference =
           [](const Refs& x) {
             Ref y({2, 6, 4});
             for (int64_t i = 0; i < 2; ++i)
               for (int64_t k = 0; k < 4; ++k) {
                 for (int64_t j = 0; j < 3; ++j) y(i, j, k) = x[0](i, j, k);
                 y(i, 3, k) = x[1](i, 0, k);
                 for (int64_t j = 0; j < 2; ++j) y(i, 4 + j, k) = x[2](i, j, k);
               }
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{256, 1024}}, {{256, 1024}}, {{256, 1024}}}},
      {.name = "stack",
       .inputs = {{{2, 3}}, {{2, 3}}},
       .run =
           [](const Tensors& x) {
             return stack({x[0], x[1], x[0]}, -1);
           },
       .reference =
           [](const Refs& x) {
             Ref y({2, 3, 3});
             for (int64_t i = 0; i < 6; ++i)
               for (int64_t k = 0; k < 3; ++k) y[i * 3 + k] = x[k == 1 ? 1 : 0][i];
             return y;
           }},
      {.name = "split/one_part_unused",
       .inputs = {{{3, 7}}},
       .run =
           [](const Tensors& x) {
             const std::vector<Tensor> parts = split(x[0], 3, 1);
             return cat({parts[2], parts[0]}, 1);
           },
       .reference =
           [](const Refs& x) {
             Ref y({3, 4});
             for (int64_t i = 0; i < 3; ++i) {
               y(i, 0) = x[0](i, 6);
               for (int64_t j = 0; j < 3; ++j) y(i, 1 + j) = x[0](i, j);
             }
             return y;
           }},
      {.name = "unbind",
       .inputs = {{{3, 4, 2}}},
       .run =
           [](const Tensors& x) {
             const std::vector<Tensor> parts = unbind(x[0], 1);
             return stack({parts[3], parts[1]});
           },
       .reference =
           [](const Refs& x) {
             Ref y({2, 3, 2});
             for (int64_t i = 0; i < 3; ++i)
               for (int64_t k = 0; k < 2; ++k) {
                 y(0, i, k) = x[0](i, 3, k);
                 y(1, i, k) = x[0](i, 1, k);
               }
             return y;
           }},
      {.name = "pad",
       .inputs = {{{2, 3, 4}}},
       .run =
           [](const Tensors& x) {
             return pad(x[0], {{1, 0}, {2, 3}}, -0.5);
           },
       .reference =
           [](const Refs& x) {
             Ref y({2, 4, 9}, -0.5);
             for (int64_t i = 0; i < 2; ++i)
               for (int64_t j = 0; j < 3; ++j)
                 for (int64_t k = 0; k < 4; ++k) y(i, 1 + j, 2 + k) = x[0](i, j, k);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{64, 32, 28, 28}}}},
      {.name = "flip",
       .inputs = {{{3, 5}}},
       .run = [](const Tensors& x) { return flip(x[0], 1); },
       .reference =
           [](const Refs& x) {
             Ref y({3, 5});
             for (int64_t i = 0; i < 15; ++i) y[i] = x[0](i / 5, 4 - i % 5);
             return y;
           }},
      {.name = "roll",
       .inputs = {{{3, 5}}},
       .run = [](const Tensors& x) { return roll(x[0], -7, 1); },
       .reference =
           [](const Refs& x) {
             Ref y({3, 5});
             for (int64_t i = 0; i < 15; ++i) y[i] = x[0](i / 5, (i % 5 + 7) % 5);
             return y;
           }},
  };
}

OpCases masks_and_ranks() {
  return {
      {.name = "masked_fill",
       .inputs = {{{2, 4, 3}}, In::booleans({4, 3})},
       .run = [](const Tensors& x) { return masked_fill(x[0], x[1], 1.5); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < y.numel(); ++i)
               if (x[1][i % 12] != 0) y[i] = 1.5;
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{64, 256, 256}}, In::booleans({256, 256})}},
      {.name = "tril",
       .inputs = {{{2, 4, 5}}},
       .run = [](const Tensors& x) { return tril(x[0], 1); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < y.numel(); ++i)
               if (i % 5 > i / 5 % 4 + 1) y[i] = 0;
             return y;
           }},
      {.name = "triu",
       .inputs = {{{4, 5}}},
       .run = [](const Tensors& x) { return triu(x[0], -1); },
       .reference =
           [](const Refs& x) {
             Ref y = x[0];
             for (int64_t i = 0; i < y.numel(); ++i)
               if (i % 5 < i / 5 - 1) y[i] = 0;
             return y;
           }},
      rank_case(
          "topk/largest", [](const Tensor& x) { return topk(x, 3, {.dim = 1}).values; }, 3, true, false),
      rank_case(
          "topk/smallest", [](const Tensor& x) { return topk(x, 2, {.dim = 1, .largest = false}).values; }, 2, false,
          false),
      rank_case(
          "topk/indices", [](const Tensor& x) { return topk(x, 3, {.dim = -2}).indices; }, 3, true, true),
      rank_case(
          "sort/rising", [](const Tensor& x) { return sort(x, {.dim = 1}).values; }, 7, false, false),
      rank_case(
          "sort/falling", [](const Tensor& x) { return sort(x, {.dim = 1, .descending = true}).values; }, 7, true,
          false),
      rank_case(
          "sort/indices", [](const Tensor& x) { return sort(x, {.dim = 1}).indices; }, 7, false, true),
      rank_case(
          "topk/long", [](const Tensor& x) { return topk(x, 5, {.dim = 1}).values; }, 5, true, false, kLong),
      rank_case(
          "topk/many", [](const Tensor& x) { return topk(x, 40, {.dim = 1}).indices; }, 40, true, true, kLong),
      rank_case(
          "sort/long", [](const Tensor& x) { return sort(x, {.dim = 1}).indices; }, 300, false, true, kLong),
      rank_case(
          "sort/longest", [](const Tensor& x) { return sort(x, {.dim = 1}).values; }, 2100, false, false, kLongest),
  };
}

}  // namespace

OpCases index_cases() {
  OpCases all;
  for (OpCases cases : {by_index(), joins(), masks_and_ranks()})
    all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
  return all;
}

}  // namespace weft::testing
