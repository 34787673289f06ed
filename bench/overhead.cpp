// What one tiny op costs: a chain of 1000, x = x · a and x = x + b in turn on a few elements, so that arithmetic is
// nothing and bookkeeping is all. `bench/peers/overhead_torch.cpp` is the same chain in PyTorch's C++ API.
//   overhead [elements] [repetitions]     one JSON line: ns an op, median over repetitions
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "tensor/threads.h"

namespace {

using namespace weft;
constexpr int kOps = 1000;

/// CPU time of the process in ns: a chain takes milliseconds, and on a busy machine wall time would count the others.
double now() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t elements = argc > 1 ? std::atoll(argv[1]) : 1;
  const int repetitions = argc > 2 ? std::atoi(argv[2]) : 200;
  set_num_threads(1);
  const Tensor a = full({elements}, 1.0001), b = full({elements}, 1e-4);
  std::vector<double> inference, forward, both;
  const auto chain = [&](Tensor x) {
    for (int i = 0; i < kOps; i += 2) {
      x = x * a;
      x = x + b;
    }
    return x;
  };
  for (int r = 0; r < repetitions + repetitions / 10; ++r) {
    Tensor leaf = ones({elements});
    double start = now();
    {
      NoGrad guard;
      chain(leaf);
    }
    const double without_grad = now() - start;
    leaf.requires_grad_();
    start = now();
    Tensor y = chain(leaf);
    const double recorded = now() - start;
    y.backward({.gradient = ones({elements})});
    y = Tensor();
    const double whole = now() - start;
    if (r < repetitions / 10) continue;  // warm-up
    inference.push_back(without_grad / kOps);
    forward.push_back(recorded / kOps);
    both.push_back(whole / kOps);
  }
  std::printf(
      "{\"job\": \"overhead\", \"who\": \"weft\", \"elements\": %lld, \"no_grad_ns\": %.1f, \"forward_ns\": %.1f, "
      "\"forward_backward_ns\": %.1f, \"fastest_ns\": %.1f}\n",
      static_cast<long long>(elements), median(inference), median(forward), median(both),
      *std::min_element(both.begin(), both.end()));
}
