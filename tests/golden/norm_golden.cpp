// Golden rows of norm and softmax.
#include <gtest/gtest.h>

#include "autograd/ops/norm.h"
#include "autograd/ops/softmax.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

/// Value, and the running statistics after it.
GoldenRow batch(const std::string& name, const BatchNormOptions& options) {
  return {"batch/" + name, [=](Inputs in) -> Results {
            const Tensor mean = in[3].clone(), variance = in[4].clone();
            const Tensor y = batch_norm(in[0], in[1], in[2], mean, variance, options);
            return {y, mean, variance};
          }};
}

TEST(Golden, norm) {
  const std::vector<GoldenRow> rows = {
      batch("training_2d", {}),
      batch("training_3d", {}),
      batch("training_4d", {}),
      batch("eval_2d", {.training = false}),
      batch("eval_3d", {.training = false}),
      batch("eval_4d", {.training = false}),
      batch("momentum", {.momentum = 0.3}),
      {"layer/last", [](Inputs in) { return layer_norm(in[0], in[1], in[2]); }},
      {"layer/two_dims", [](Inputs in) { return layer_norm(in[0], in[1], in[2], 1e-3); }},
      {"group/2d", [](Inputs in) { return group_norm(in[0], 2, in[1], in[2]); }},
      {"group/4d", [](Inputs in) { return group_norm(in[0], 3, in[1], in[2]); }},
      {"group/instance", [](Inputs in) { return group_norm(in[0], 4, in[1], in[2]); }},
      {"rms/last", [](Inputs in) { return rms_norm(in[0], in[1], 1e-5); }},
      {"rms/eps", [](Inputs in) { return rms_norm(in[0], in[1], 1e-2); }},
  };
  check_golden("norm", rows);
}

void add_softmax(std::vector<GoldenRow>& rows, const std::string& name, Tensor (*op)(const Tensor&, int64_t)) {
  for (const char* variant : {"/last", "/large", "/masked", "/one"})
    rows.push_back({name + variant, [op](Inputs in) { return op(in[0], -1); }});
  rows.push_back({name + "/middle", [op](Inputs in) { return op(in[0], 1); }});
  rows.push_back({name + "/first", [op](Inputs in) { return op(in[0], 0); }});
}

TEST(Golden, softmax) {
  std::vector<GoldenRow> rows;
  add_softmax(rows, "softmax", softmax);
  add_softmax(rows, "log_softmax", log_softmax);
  check_golden("softmax", rows);
}

}  // namespace
}  // namespace weft::testing
