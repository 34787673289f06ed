// The IMDB job behind the command line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/common/run.h"

namespace weft::imdb {

struct Options : apps::Options {
  Options() { epochs = -1; }  // the model's usual number

  std::string model = "cnn";
  int64_t vocabulary = 20000;
  int64_t max_length = 400;
  std::string schedule = "one-cycle";
  std::optional<bool> bucket;  ///< undefined: as the model is best served
  bool sparse_embeddings = false;
  std::vector<std::string> texts;  ///< to be classified by the weights of --load; "-": the lines of standard input
};

/// Trains, chooses the best epoch, tests, prints, and writes what was asked for; or prints how likely each text is
/// praise. Throws weft::Error for every wrong option or input, and then writes nothing.
void run(const Options& options);

}  // namespace weft::imdb
