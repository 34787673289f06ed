// Golden rows of copy and elementwise.
#include <gtest/gtest.h>

#include "autograd/ops/elementwise.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

GoldenRow unary(const char* name, Tensor (*op)(const Tensor&)) {
  return {name, [op](Inputs in) { return op(in[0]); }};
}

void add_binary(std::vector<GoldenRow>& rows, const std::string& name, Tensor (*op)(const Tensor&, const Tensor&),
                std::initializer_list<const char*> variants) {
  for (const char* variant : variants) rows.push_back({name + variant, [op](Inputs in) { return op(in[0], in[1]); }});
}

TEST(Golden, copy) {
  const auto round_trip = [](DType dtype) { return [dtype](Inputs in) { return in[0].to(dtype).to(in[0].dtype()); }; };
  check_golden("copy", {
                           {"cast/f32", round_trip(f32)},
                           {"cast/f16", round_trip(f16)},
                           {"cast/bf16", round_trip(bf16)},
                           {"cast/i64", [](Inputs in) { return in[0].to(i64); }},
                           {"cast/bool", [](Inputs in) { return in[0].to(boolean); }},
                           {"transpose", [](Inputs in) { return in[0].transpose(0, 2).contiguous(); }},
                           {"permute",
                            [](Inputs in) {
                              return in[0].permute({2, 0, 1}).clone();
                            }},
                           {"expand",
                            [](Inputs in) {
                              return in[0].expand({4, 3, 5}) * 2;
                            }},
                           {"reshape",
                            [](Inputs in) {
                              return in[0].t().reshape({2, 6});
                            }},
                           {"narrow", [](Inputs in) { return in[0].narrow(1, 1, 3); }},
                           {"select", [](Inputs in) { return in[0].select(1, 2); }},
                       });
}

TEST(Golden, elementwise) {
  std::vector<GoldenRow> rows = {
      {"pow/cube", [](Inputs in) { return pow(in[0], 3); }},
      {"pow/square_root", [](Inputs in) { return pow(in[0], 0.5); }},
      {"pow/inverse", [](Inputs in) { return pow(in[0], -1.5); }},
      {"affine", [](Inputs in) { return 1 - in[0] * 3; }},
      {"divide_number", [](Inputs in) { return 2 / in[0]; }},
      unary("neg", neg),
      unary("square", square),
      unary("exp", exp),
      unary("sin", sin),
      unary("cos", cos),
      unary("erf", erf),
      unary("sigmoid", sigmoid),
      unary("tanh", tanh),
      unary("gelu", gelu),
      unary("gelu_tanh", gelu_tanh),
      unary("silu", silu),
      unary("softplus", softplus),
      unary("log", log),
      unary("sqrt", sqrt),
      unary("rsqrt", rsqrt),
      unary("abs", abs),
      unary("sign", sign),
      {"relu", [](Inputs in) { return relu(in[0]); }},
      {"leaky_relu", [](Inputs in) { return leaky_relu(in[0], 0.1); }},
      {"clamp", [](Inputs in) { return clamp(in[0], -0.5, 0.75); }},
      {"where", [](Inputs in) { return where(in[0].to(boolean), in[1], in[2]); }},
  };
  add_binary(rows, "add", add, {"/same", "/broadcast"});
  add_binary(rows, "sub", sub, {"/same", "/broadcast"});
  add_binary(rows, "mul", mul, {"/same", "/broadcast"});
  add_binary(rows, "div", div, {"/same", "/broadcast"});
  add_binary(rows, "maximum", maximum, {"/same", "/broadcast", "/ties"});
  add_binary(rows, "minimum", minimum, {"/same", "/broadcast", "/ties"});
  add_binary(rows, "pow", pow, {"/tensor", "/zero_base"});
  add_binary(rows, "eq", eq, {""});
  add_binary(rows, "ne", ne, {""});
  add_binary(rows, "lt", lt, {""});
  add_binary(rows, "le", le, {""});
  add_binary(rows, "gt", gt, {""});
  add_binary(rows, "ge", ge, {""});
  check_golden("elementwise", rows);
}

}  // namespace
}  // namespace weft::testing
