// One entry an op, four uses: value against a reference written with plain loops, gradient check, parity between
// devices, and the op's benchmark. `<stem>_cases.cpp` lists the entries of a stem; `cases.cpp` lists the stems.
#pragma once

#include <cmath>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft::testing {

/// How to make one input. Floating values are uniform in [low, high), kept away from 0 where `away_from_zero`, and all
/// different by at least (high - low) / (4 · count) where `distinct` (for maxima and sorting).
struct In {
  enum Kind { floating, index, boolean };
  Shape sizes;
  Kind kind = floating;
  double low = -2, high = 2;
  bool distinct = false;
  bool away_from_zero = false;

  /// i64 values in [0, count).
  static In indices(Shape sizes, int64_t count) { return {sizes, index, 0, static_cast<double>(count)}; }
  static In booleans(Shape sizes) { return {sizes, boolean}; }
  static In positive(Shape sizes) { return {sizes, floating, 0.3, 2.5}; }
};

/// Values of a reference: row-major doubles.
struct Ref {
  Shape sizes;
  std::vector<double> values;

  Ref() = default;
  explicit Ref(Shape shape, double value = 0) : sizes(shape), values(static_cast<size_t>(shape.numel()), value) {}
  /// ref(i, j, k): as many indices as dimensions.
  template <class... I>
  double& operator()(I... i) {
    return values[at({static_cast<int64_t>(i)...})];
  }
  template <class... I>
  double operator()(I... i) const {
    return values[at({static_cast<int64_t>(i)...})];
  }
  double& operator[](int64_t i) { return values[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return values[static_cast<size_t>(i)]; }
  int64_t numel() const { return static_cast<int64_t>(values.size()); }

 private:
  size_t at(std::initializer_list<int64_t> i) const {
    int64_t flat = 0, d = 0;
    for (int64_t k : i) flat = flat * sizes[d++] + k;
    return static_cast<size_t>(flat);
  }
};

/// The activations of products, by their definitions.
inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu:
      return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
    case Activation::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
  }
  return x;
}

struct OpCase {
  std::string name;  ///< "softmax/last_dim": op, then what this entry is about
  std::vector<In> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> run;
  /// The same inputs as f64; empty where the entry is only for gradients and layouts.
  std::function<Ref(const std::vector<Ref>&)> reference;
  bool gradient = true;                    ///< run gradcheck, and compare f32 gradients with f64's
  bool half_gradient = true;               ///< where `gradient`: compare those of 16-bit dtypes as well
  bool differences = true;                 ///< false leaves gradcheck out, where f32 runs other code than f64
  std::vector<DType> dtypes = {f32, f64};  ///< floating inputs are made in each of these for the value test
  double tolerance = 2e-6;     ///< for f32, relative to max(1, |value|); 16-bit types get 2^-7 / 2^-10 instead
  std::vector<In> bench = {};  ///< inputs of the benchmark; none: no benchmark
  double flops = 0;            ///< arithmetic of one benchmark run, where that is the limit; else bytes are shown
};

using OpCases = std::vector<OpCase>;

/// Inputs of a case, reproducible: floating ones in `dtype`.
std::vector<Tensor> make_inputs(const std::vector<In>& inputs, DType dtype, Device device = {});
Ref to_ref(const Tensor& x);

// One function a stem; cases.cpp joins them.
OpCases attention_cases();
OpCases conv_cases();
OpCases conv_max_cases();
OpCases dropout_cases();
OpCases elementwise_cases();
OpCases embedding_cases();
OpCases index_cases();
OpCases loss_cases();
OpCases matmul_cases();
OpCases norm_cases();
OpCases reduce_cases();
OpCases rnn_cases();
OpCases pool_cases();
OpCases softmax_cases();

OpCases all_cases();
/// Where op tests run: the CPU, or what the environment names in WEFT_TEST_DEVICE.
Device test_device();

}  // namespace weft::testing
