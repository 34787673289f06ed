// Cases of the matrix products.
#include "autograd/ops/matmul.h"

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

OpCase linear_case(const char* name, Activation activation, bool bias = true) {
  OpCase c{.name = name,
           .inputs = {{{6, 4}}, {{5, 4}}},
           .run = [=](const Tensors& x) { return linear(x[0], x[1], bias ? x[2] : Tensor(), activation); },
           .reference =
               [=](const Refs& x) {
                 Ref y({6, 5});
                 for (int64_t i = 0; i < 6; ++i)
                   for (int64_t o = 0; o < 5; ++o) {
                     double v = bias ? x[2][o] : 0;
                     for (int64_t k = 0; k < 4; ++k) v += x[0](i, k) * x[1](o, k);
                     y(i, o) = activated(activation, v);
                   }
                 return y;
               },
           .dtypes = {f32, f64, bf16, f16}};
  if (bias) c.inputs.push_back({{5}});
  return c;
}

}  // namespace

OpCases matmul_cases() {
  return {
      {.name = "matmul/matrices",
       .inputs = {{{5, 7}}, {{7, 4}}},
       .run = [](const Tensors& x) { return matmul(x[0], x[1]); },
       .reference =
           [](const Refs& x) {
             Ref y({5, 4});
             for (int64_t i = 0; i < 5; ++i)
               for (int64_t j = 0; j < 4; ++j)
                 for (int64_t k = 0; k < 7; ++k) y(i, j) += x[0](i, k) * x[1](k, j);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{1024, 1024}}, {{1024, 1024}}},
       .flops = 2.0 * 1024 * 1024 * 1024},
      {.name = "matmul/batch_broadcast",
       .inputs = {{{2, 1, 3, 4}}, {{5, 4, 2}}},
       .run = [](const Tensors& x) { return matmul(x[0], x[1]); },
       .reference =
           [](const Refs& x) {
             Ref y({2, 5, 3, 2});
             for (int64_t a = 0; a < 2; ++a)
               for (int64_t b = 0; b < 5; ++b)
                 for (int64_t i = 0; i < 3; ++i)
                   for (int64_t j = 0; j < 2; ++j)
                     for (int64_t k = 0; k < 4; ++k) y(a, b, i, j) += x[0](a, 0, i, k) * x[1](b, k, j);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16}},
      {.name = "matmul/one_matrix_for_all",
       .inputs = {{{3, 2, 4}}, {{4, 5}}},
       .run = [](const Tensors& x) { return matmul(x[0], x[1]); },
       .reference =
           [](const Refs& x) {
             Ref y({3, 2, 5});
             for (int64_t a = 0; a < 3; ++a)
               for (int64_t i = 0; i < 2; ++i)
                 for (int64_t j = 0; j < 5; ++j)
                   for (int64_t k = 0; k < 4; ++k) y(a, i, j) += x[0](a, i, k) * x[1](k, j);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16}},
      {.name = "matmul/transposed",
       .inputs = {{{3, 6, 4}}, {{3, 5, 6}}},
       .run = [](const Tensors& x) { return matmul(x[0].t(), x[1].t()); },
       .reference =
           [](const Refs& x) {
             Ref y({3, 4, 5});
             for (int64_t a = 0; a < 3; ++a)
               for (int64_t i = 0; i < 4; ++i)
                 for (int64_t j = 0; j < 5; ++j)
                   for (int64_t k = 0; k < 6; ++k) y(a, i, j) += x[0](a, k, i) * x[1](a, j, k);
             return y;
           },
       .dtypes = {f32, f64, bf16, f16}},
      {.name = "matmul/vectors",
       .inputs = {{{6}}, {{6}}},
       .run = [](const Tensors& x) { return matmul(x[0], x[1]); },
       .reference =
           [](const Refs& x) {
             Ref y{Shape{}};
             for (int64_t k = 0; k < 6; ++k) y[0] += x[0][k] * x[1][k];
             return y;
           },
       .dtypes = {f32, f64, bf16, f16}},
      {.name = "linear/bias",
       .inputs = {{{2, 3, 4}}, {{5, 4}}, {{5}}},
       .run = [](const Tensors& x) { return linear(x[0], x[1], x[2]); },
       .reference =
           [](const Refs& x) {
             Ref y({2, 3, 5});
             for (int64_t i = 0; i < 6; ++i)
               for (int64_t o = 0; o < 5; ++o) {
                 double& v = y[i * 5 + o] = x[2][o];
                 for (int64_t k = 0; k < 4; ++k) v += x[0][i * 4 + k] * x[1](o, k);
               }
             return y;
           },
       .dtypes = {f32, f64, bf16, f16},
       .bench = {{{64, 9216}}, {{128, 9216}}, {{128}}},
       .flops = 2.0 * 64 * 9216 * 128},
      linear_case("linear/relu", Activation::relu),
      linear_case("linear/gelu", Activation::gelu),
      linear_case("linear/gelu_tanh", Activation::gelu_tanh),
      linear_case("linear/gelu_tanh_no_bias", Activation::gelu_tanh, false),
  };
}

}  // namespace weft::testing
