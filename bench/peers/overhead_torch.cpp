// The chain of bench/overhead.cpp in PyTorch's C++ API; built and run by overhead_torch.sh.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

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
  at::set_num_threads(1);
  const torch::Tensor a = torch::full({elements}, 1.0001f), b = torch::full({elements}, 1e-4f);
  const torch::Tensor upstream = torch::ones({elements});
  std::vector<double> inference, forward, both;
  const auto chain = [&](torch::Tensor x) {
    for (int i = 0; i < kOps; i += 2) {
      x = x * a;
      x = x + b;
    }
    return x;
  };
  for (int r = 0; r < repetitions + repetitions / 10; ++r) {
    torch::Tensor leaf = torch::ones({elements});
    double start = now();
    {
      torch::InferenceMode guard;
      chain(leaf);
    }
    const double without_grad = now() - start;
    leaf.requires_grad_();
    start = now();
    torch::Tensor y = chain(leaf);
    const double recorded = now() - start;
    y.backward(upstream);
    y = torch::Tensor();
    const double whole = now() - start;
    if (r < repetitions / 10) continue;  // warm-up
    inference.push_back(without_grad / kOps);
    forward.push_back(recorded / kOps);
    both.push_back(whole / kOps);
  }
  std::printf(
      "{\"job\": \"overhead\", \"who\": \"pytorch\", \"elements\": %lld, \"no_grad_ns\": %.1f, \"forward_ns\": %.1f, "
      "\"forward_backward_ns\": %.1f, \"fastest_ns\": %.1f, \"torch\": \"%s\"}\n",
      static_cast<long long>(elements), median(inference), median(forward), median(both),
      *std::min_element(both.begin(), both.end()), TORCH_VERSION);
}
