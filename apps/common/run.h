// What the apps share: the options that each has, and what a run does with them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tensor/device.h"
#include "train/evaluate.h"
#include "train/fit.h"

namespace weft::apps {

struct Options {
  std::string data;
  int workers = 1;
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

/// Sets what holds for the whole process, and checks that the files to be written can be. Throws for a wrong option.
Device set_up(const Options& options);

/// The options that a training loop takes over.
train::FitOptions fit_options(const Options& options, Device device);

/// Scores in the precision that `options` train in. Weights that have become NaN or infinite are an error, not a
/// result: `what` names what they were tested on.
train::Scores test(const Options& options, nn::Module& model, const train::Task& task, const data::Dataset& dataset,
                   Device device, const char* what);

/// The end of a run's first line, from the device on.
std::string describe(const Options& options, Device device, const std::string& training);

/// What a run has reached.
struct Outcome {
  train::Scores test;
  train::Fitted fitted;
  double seconds = 0;
};

/// The last line, and the file of `--result` with the entries of `more`, an object or null, at its end. Weights are
/// saved before.
void finish(const Options& options, const Outcome& outcome, const nlohmann::ordered_json& more);

}  // namespace weft::apps
