// The MNIST job behind the command line.
#pragma once

#include <cstdint>
#include <string>

namespace weft::mnist {

struct Options {
  std::string data;
  int workers = 1;
  std::string model = "mnist";
  std::string load;
  bool eval_only = false;
  int64_t epochs = 3;
  int64_t batch = 64;
  std::string optimizer = "adamw";
  double lr = 0;    ///< 0: the optimizer's usual one
  std::string amp;  ///< bf16 or fp16: products in 16 bits; empty: all in f32
  uint64_t seed = 1;
  std::string device = "auto";  ///< a CUDA device where there is one, else the CPU
  bool cuda_graphs = false;
  bool tf32 = false;
  int threads = 0;  ///< 0: as many as the library takes by itself
  bool keep_denormals = false;
  std::string save;
  std::string result;
};

/// Trains, tests, prints, and writes what was asked for; throws weft::Error for every wrong option or input, and then
/// writes nothing.
void run(const Options& options);

}  // namespace weft::mnist
