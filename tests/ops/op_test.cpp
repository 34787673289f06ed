// What every op case is put through.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "tensor/threads.h"
#include "tensor/view.h"
#include "tests/ops/op_case.h"

namespace weft::testing {

/// What gtest shows of a case.
void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }

namespace {

double tolerance(const OpCase& c, DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return 0x1p-7;
    case DType::f16:
      return 0x1p-10;
    case DType::f64:
      return 1e-11;
    default:
      return c.tolerance;
  }
}

/// Equal within `allowed`, relative to max(1, |wanted|); NaN equals NaN, infinities equal themselves.
::testing::AssertionResult near(const Tensor& got, const Ref& wanted, double allowed) {
  if (!(got.sizes() == wanted.sizes))
    return ::testing::AssertionFailure() << "shape " << str(got.sizes()) << ", wanted " << str(wanted.sizes);
  const std::vector<double> values = got.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const double g = values[i], w = wanted.values[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (!std::isfinite(w) || !(std::fabs(g - w) <= allowed * std::max(1.0, std::fabs(w))))
      return ::testing::AssertionFailure() << "element " << i << ": got " << g << ", wanted " << w;
  }
  return ::testing::AssertionSuccess();
}

/// The same values with other strides: dimensions reversed in memory, and a border around them.
Tensor in_other_layout(const Tensor& x) {
  if (x.dim() == 0) return x;
  Shape wide;
  for (int64_t i = x.dim() - 1; i >= 0; --i) wide.push_back(x.sizes()[i] + 2);
  Tensor memory = full(wide, 77, {x.dtype(), x.device()});
  Tensor inside = memory;
  for (int64_t i = 0; i < x.dim(); ++i) inside = raw::narrow(inside, i, 1, x.sizes()[x.dim() - 1 - i]);
  Shape order;
  for (int64_t i = x.dim() - 1; i >= 0; --i) order.push_back(i);
  Tensor view = raw::permute(inside, order);
  view.copy_(x);
  return view;
}

bool equal(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_vector<double>(), y = b.to_vector<double>();
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] != y[i] && !(std::isnan(x[i]) && std::isnan(y[i]))) return false;
  return a.sizes() == b.sizes() && a.dtype() == b.dtype();
}

/// Gradients of all floating inputs for an upstream gradient that differs from element to element.
std::vector<Tensor> gradients(const OpCase& c, std::vector<Tensor> inputs) {
  for (Tensor& x : inputs) {
    x = raw::clone(x);
    if (is_floating(x.dtype())) x.requires_grad_();
  }
  const Tensor y = c.run(inputs);
  backward({y}, {make_inputs({In{y.sizes(), In::floating, 0.5, 1.5}}, y.dtype(), y.device())[0]});
  std::vector<Tensor> grads;
  for (const Tensor& x : inputs)
    if (is_floating(x.dtype())) grads.push_back(x.grad());
  return grads;
}

class OpTest : public ::testing::TestWithParam<OpCase> {};
class OpReferenceTest : public OpTest {};
class OpGradientTest : public OpTest {};
class OpDifferencesTest : public OpTest {};
class OpHalfGradientTest : public OpTest {};

TEST_P(OpReferenceTest, ValueMatchesReference) {
  const OpCase& c = GetParam();
  const Device device = test_device();
  for (const DType dtype : c.dtypes) {
    SCOPED_TRACE(name(dtype));
    const int64_t damaged = memory::Checking::damaged();
    {
      const memory::Checking poisoned;
      const std::vector<Tensor> inputs = make_inputs(c.inputs, dtype, device);
      std::vector<Ref> refs;
      for (const Tensor& x : inputs) refs.push_back(to_ref(x));
      const Tensor y = c.run(inputs);
      EXPECT_EQ(y.device(), device);
      EXPECT_TRUE(near(y, c.reference(refs), tolerance(c, dtype)));
      for (size_t i = 0; i < inputs.size(); ++i)
        EXPECT_TRUE(near(inputs[i], refs[i], 0)) << "input " << i << " was changed";
    }
    EXPECT_EQ(memory::Checking::damaged(), damaged) << "wrote outside of its memory";
  }
}

TEST_P(OpTest, LayoutDoesNotMatter) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> inputs = make_inputs(c.inputs, c.dtypes[0], test_device());
  std::vector<Tensor> strided;
  for (const Tensor& x : inputs) strided.push_back(in_other_layout(x));
  EXPECT_TRUE(near(c.run(strided), to_ref(c.run(inputs)), tolerance(c, c.dtypes[0])));
}

TEST_P(OpTest, RepeatsBitForBit) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> inputs = make_inputs(c.inputs, c.dtypes[0], test_device());
  EXPECT_TRUE(equal(c.run(inputs), c.run(inputs)));
}

TEST_P(OpDifferencesTest, GradientMatchesDifferences) {
  const OpCase& c = GetParam();
  const GradcheckResult result = gradcheck(c.run, make_inputs(c.inputs, DType::f64, test_device()));
  EXPECT_TRUE(result.ok) << result.message;
}

// The double one is the CPU's, on any device.
TEST_P(OpGradientTest, SinglePrecisionGradientMatchesDouble) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> single = make_inputs(c.inputs, DType::f32);
  std::vector<Tensor> wide, dense, strided;
  for (const Tensor& x : single) {
    wide.push_back(is_floating(x.dtype()) ? raw::to(x, DType::f64) : x);
    dense.push_back(x.to(test_device()));
    strided.push_back(in_other_layout(dense.back()));
  }
  const std::vector<Tensor> wanted = gradients(c, wide);
  for (const auto& inputs : {dense, strided}) {
    const std::vector<Tensor> got = gradients(c, inputs);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(got[i].defined(), wanted[i].defined());
      if (!wanted[i].defined()) continue;
      EXPECT_TRUE(near(got[i], to_ref(wanted[i]), 10 * c.tolerance)) << "input " << i;
    }
  }
}

// Some values are rounded on the way, so errors count against the largest gradient; both start from the same inputs.
TEST_P(OpHalfGradientTest, SixteenBitGradientMatchesDouble) {
  const OpCase& c = GetParam();
  for (const DType dtype : c.dtypes) {
    if (size_of(dtype) != 2) continue;
    SCOPED_TRACE(name(dtype));
    std::vector<Tensor> wide, half;
    for (const Tensor& x : make_inputs(c.inputs, dtype)) {
      wide.push_back(is_floating(x.dtype()) ? raw::to(x, DType::f64) : x);
      half.push_back(x.to(test_device()));
    }
    const std::vector<Tensor> wanted = gradients(c, wide), got = gradients(c, half);
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(got[i].defined(), wanted[i].defined());
      if (!wanted[i].defined()) continue;
      EXPECT_EQ(got[i].dtype(), dtype);
      double largest = 1;
      for (const double v : wanted[i].to_vector<double>()) largest = std::max(largest, std::fabs(v));
      Ref scaled = to_ref(wanted[i]);
      for (double& v : scaled.values) v /= largest;
      EXPECT_TRUE(near(got[i].to(f64) * (1 / largest), scaled, 2 * tolerance(c, dtype))) << "input " << i;
    }
  }
}

bool has_half(const OpCase& c) {
  return std::ranges::any_of(c.dtypes, [](DType dtype) { return size_of(dtype) == 2; });
}

OpCases cases_where(bool (*wanted)(const OpCase&)) {
  OpCases cases = all_cases();
  std::erase_if(cases, [wanted](const OpCase& c) { return !wanted(c); });
  return cases;
}

std::string test_name(const ::testing::TestParamInfo<OpCase>& test) {
  std::string name = test.param.name;
  for (char& ch : name)
    if (!std::isalnum(static_cast<unsigned char>(ch))) ch = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, OpTest, ::testing::ValuesIn(all_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(All, OpReferenceTest,
                         ::testing::ValuesIn(cases_where([](const OpCase& c) { return c.reference != nullptr; })),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, OpGradientTest,
                         ::testing::ValuesIn(cases_where([](const OpCase& c) { return c.gradient; })), test_name);
INSTANTIATE_TEST_SUITE_P(All, OpHalfGradientTest, ::testing::ValuesIn(cases_where([](const OpCase& c) {
                           return c.gradient && c.half_gradient && has_half(c);
                         })),
                         test_name);
INSTANTIATE_TEST_SUITE_P(All, OpDifferencesTest,
                         ::testing::ValuesIn(cases_where([](const OpCase& c) { return c.gradient && c.differences; })),
                         test_name);

}  // namespace
}  // namespace weft::testing
