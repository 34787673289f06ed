// The table of all op cases, and how their inputs are made.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "tensor/random.h"
#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

/// Uniform in [0, 1), a pure function of both numbers.
double unit(uint64_t stream, uint64_t i) {
  const PhiloxBlock b = philox(2026, i, stream);
  return to_unit_double(b[0], b[1]);
}

std::vector<double> floating_values(const In& in, uint64_t stream) {
  const auto n = static_cast<size_t>(in.sizes.numel());
  std::vector<double> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = unit(stream, i);
  if (in.distinct) {  // ranks instead of values, each moved by at most a quarter step
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::sort(order, [&](size_t a, size_t b) { return values[a] < values[b]; });
    for (size_t rank = 0; rank < n; ++rank)
      values[order[rank]] =
          (static_cast<double>(rank) + 0.5 + 0.25 * (unit(stream + 1000, rank) - 0.5)) / static_cast<double>(n);
  }
  for (double& v : values) {
    v = in.low + (in.high - in.low) * v;
    if (in.away_from_zero && std::abs(v) < 0.05) v = v < 0 ? v - 0.1 : v + 0.1;
  }
  return values;
}

}  // namespace

std::vector<Tensor> make_inputs(const std::vector<In>& inputs, DType dtype, Device device) {
  std::vector<Tensor> tensors;
  for (const In& in : inputs) {
    const uint64_t stream = tensors.size() + 1;
    std::vector<double> values = floating_values(in, stream);
    if (in.kind == In::index) {
      for (double& v : values) v = std::floor(v);
      tensors.push_back(from(values, in.sizes).to(DType::i64).to(device));
    } else if (in.kind == In::boolean) {
      for (double& v : values) v = v > 0 ? 1 : 0;
      tensors.push_back(from(values, in.sizes).to(DType::boolean).to(device));
    } else {
      tensors.push_back(from(values, in.sizes).to(dtype).to(device));
    }
  }
  return tensors;
}

Ref to_ref(const Tensor& x) {
  Ref ref;
  ref.sizes = x.sizes();
  ref.values = x.to_vector<double>();
  return ref;
}

OpCases all_cases() {
  OpCases all;
  for (OpCases cases : {
           attention_cases(),
           conv_cases(),
           conv_max_cases(),
           dropout_cases(),
           elementwise_cases(),
           embedding_cases(),
           index_cases(),
           loss_cases(),
           matmul_cases(),
           norm_cases(),
           pool_cases(),
           reduce_cases(),
           rnn_cases(),
           softmax_cases(),
       })
    all.insert(all.end(), std::make_move_iterator(cases.begin()), std::make_move_iterator(cases.end()));
  return all;
}

Device test_device() {
  const char* wanted = std::getenv("WEFT_TEST_DEVICE");
  return wanted ? device_from(wanted) : cpu;
}

}  // namespace weft::testing
