// Says whether a device can be used, and computes something on the CPU in either case. Exit code 2 where it cannot.
#include <fmt/core.h>

#include <fstream>
#include <string>

#include "autograd/ops/matmul.h"
#include "tensor/backend.h"

using namespace weft;

int main(int argc, char** argv) {
  int code = 0;
  if (argc > 1) {
    try {
      fmt::print("{}\n", ones({2}, device_from(argv[1])).str());
    } catch (const Error& error) {
      fmt::print("{}\n", error.what());
      code = 2;
    }
  }
  fmt::print("cpu: {}\n", matmul(ones({2, 3}), ones({3, 2})).to_vector<float>()[0]);
  std::string line;
  for (std::ifstream maps("/proc/self/maps"); std::getline(maps, line);)
    if (line.find("/libcuda") != std::string::npos || line.find("/libcublas") != std::string::npos) {
      fmt::print("loaded:{}\n", line.substr(line.rfind(' ')));
      break;
    }
  return code;
}
