// The command line of an app: options in groups, exact checks of their values, exit codes.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string>

#include "apps/common/run.h"

namespace weft::apps {

/// What differs in the options that all apps have: words of the help and limits.
struct Words {
  const char* program;        ///< "mnist"
  const char* samples;        ///< "images"
  const char* data;           ///< what --data wants, and where is looked without it
  const char* data_example;   ///< "--data ~/fashion-mnist"
  const char* model_example;  ///< "--load digits.safetensors --eval-only"
  const char* train_example;  ///< "--epochs 1 --batch 128"
  const char* files_example;  ///< "--save digits.safetensors"
  const char* rate;           ///< what --lr is
  int64_t most_batch;
  std::string epochs = {};  ///< usual numbers, where they depend on the model
  std::string rates = {};   ///< and rates
};

/// A group of the help: its name with an example.
std::string group(const Words& words, const char* name, const char* example);

template <class T>
CLI::Option* add_number(CLI::App& app, const char* name, T& value, T low, T high, const std::string& about);
CLI::Option* add_path(CLI::App& app, const char* name, std::string& value, const char* kind, const char* about);
/// A choice among `choices`.
CLI::Option* add_choice(CLI::App& app, const char* name, std::string& value, std::vector<std::string> choices,
                        const std::string& about);

/// The options of all apps; `model` adds those of an app's own to its group "Model", `training` to "Training".
void add_options(CLI::App& app, Options& options, const Words& words,
                 const std::function<void(const std::string& group)>& model,
                 const std::function<void(const std::string& group)>& training = {});

/// Parses, then runs: the program's exit code. 0 done, 2 a wrong option or input, 3 no data found, 1 anything else.
int run_main(CLI::App& app, const Words& words, int argc, char** argv, const std::function<void()>& run);

}  // namespace weft::apps
