// Google Benchmark over the op cases that have a `bench` input, and more sizes: forward, and forward with backward;
// and a step of AdamW. bench/peers/compare_ops.py puts PyTorch's figures beside these.
//   ops_bench [--threads=N] [--device=cuda] --benchmark_filter=softmax     all entries of a stem
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "autograd/autograd.h"
#include "bench/op_sizes.h"
#include "optim/adam.h"
#include "tensor/stream.h"
#include "tensor/threads.h"
#include "tests/ops/op_case.h"
#include "train/device.h"

namespace weft::testing {
namespace {

Device device = cpu;

/// Runs as many times as the benchmark asks for. A device is waited for once in several runs, as a program would.
template <class Run>
void measure(benchmark::State& state, const Run& run) {
  const int together = device == cpu ? 1 : 16;
  synchronize(device);
  while (state.KeepRunningBatch(together)) {
    for (int i = 0; i < together; ++i) run();
    synchronize(device);
  }
}

void count(benchmark::State& state, const OpCase& c, int64_t bytes, int64_t items, double passes) {
  state.SetItemsProcessed(state.iterations() * items);
  state.SetBytesProcessed(state.iterations() * bytes);
  if (c.flops > 0)
    state.counters["flops"] = benchmark::Counter(c.flops * passes * static_cast<double>(state.iterations()),
                                                 benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
}

/// Bytes are those of the inputs and the result, each once: what must be moved at least.
int64_t bytes_of(const std::vector<Tensor>& inputs, const Tensor& y) {
  int64_t bytes = y.bytes();
  for (const Tensor& x : inputs) bytes += x.bytes();
  return bytes;
}

void forward(benchmark::State& state, const OpCase& c) {
  const std::vector<Tensor> inputs = make_inputs(c.bench, f32, device);
  int64_t bytes = 0, items = 0;
  {  // the first run also takes the memory from the system
    const Tensor y = c.run(inputs);
    bytes = bytes_of(inputs, y);
    items = y.numel();
  }
  measure(state, [&] { benchmark::DoNotOptimize(c.run(inputs).raw_data()); });
  count(state, c, bytes, items, 1);
}

void forward_backward(benchmark::State& state, const OpCase& c) {
  std::vector<Tensor> inputs = make_inputs(c.bench, f32, device);
  for (Tensor& x : inputs)
    if (is_floating(x.dtype())) x.requires_grad_();
  Tensor dy;
  int64_t bytes = 0, items = 0;
  {
    const Tensor y = c.run(inputs);
    dy = ones_like(y.detach());
    bytes = bytes_of(inputs, y);
    items = y.numel();
    y.backward({.gradient = dy});
  }
  measure(state, [&] {
    for (const Tensor& x : inputs)
      if (is_floating(x.dtype())) Tensor(x).set_grad(Tensor());
    c.run(inputs).backward({.gradient = dy});
  });
  // Twice the arithmetic again where there are two operands to differentiate; reported as three passes.
  count(state, c, 3 * bytes, items, 3);
}

/// The parameters of the MNIST net: 1.2 million in eight tensors.
void adamw(benchmark::State& state) {
  std::vector<Named> parameters;
  for (const Shape& sizes :
       std::vector<Shape>{{32, 1, 3, 3}, {32}, {64, 32, 3, 3}, {64}, {128, 9216}, {128}, {10, 128}, {10}}) {
    Tensor p = make_inputs({{sizes}}, f32, device)[0].requires_grad_();
    p.set_grad(make_inputs({{sizes}}, f32, device)[0]);
    parameters.push_back({std::to_string(parameters.size()), p});
  }
  optim::AdamW adam(parameters, {.lr = 1e-3});
  measure(state, [&] { adam.step(); });
}

}  // namespace
}  // namespace weft::testing

int main(int argc, char** argv) try {
  using namespace weft;
  for (; argc > 1; --argc, ++argv) {
    if (std::strncmp(argv[1], "--threads=", 10) == 0)
      set_num_threads(std::atoi(argv[1] + 10));
    else if (std::strncmp(argv[1], "--device=", 9) == 0)
      testing::device = train::device_for(argv[1] + 9);
    else
      break;
    argv[1] = argv[0];
  }
  static testing::OpCases cases = testing::all_cases();
  for (const testing::OpCase& c : testing::more_sizes()) cases.push_back(c);
  for (const testing::OpCase& c : cases) {
    if (c.bench.empty()) continue;
    benchmark::RegisterBenchmark((c.name + "/forward").c_str(), testing::forward, c)->UseRealTime();
    if (c.gradient)
      benchmark::RegisterBenchmark((c.name + "/forward_backward").c_str(), testing::forward_backward, c)->UseRealTime();
  }
  benchmark::RegisterBenchmark("adamw", testing::adamw)->UseRealTime();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("weft threads", std::to_string(num_threads()));
  benchmark::AddCustomContext("weft device", train::describe(testing::device));
  benchmark::RunSpecifiedBenchmarks();
} catch (const weft::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
