// The MNIST job behind the command line.
#pragma once

#include <string>

#include "apps/common/run.h"

namespace weft::mnist {

struct Options : apps::Options {
  std::string model = "mnist";
};

/// Trains, tests, prints, and writes what was asked for; throws weft::Error for every wrong option or input, and then
/// writes nothing.
void run(const Options& options);

}  // namespace weft::mnist
