// Options that all apps have.
#include "apps/common/command_line.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/download.h"
#include "optim/optimizers.h"
#include "tensor/error.h"

namespace weft::apps {
namespace {

/// Help in groups, each with an example below its name.
class Help : public CLI::Formatter {
 public:
  explicit Help(const char* program) : program_(program) { column_width(24); }
  std::string make_usage(const CLI::App* app, std::string) const override {
    std::string usage = fmt::format("Usage: ./weft {} [options]", program_), about;
    for (const CLI::Option* option : app->get_options()) {
      if (!option->get_positional()) continue;
      usage += fmt::format(" [{}]", option->get_name());
      about += fmt::format("{}: {}\n", option->get_name(), option->get_description());
    }
    return fmt::format("{}\n{}\n", usage, about);
  }
  std::string make_positionals(const CLI::App*) const override { return {}; }
  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    std::string text = fmt::format("{}\n", group);
    for (const CLI::Option* option : options) text += make_option(option, positional);
    return text;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : fmt::format(" {}", option->get_type_name());
  }

 private:
  const char* program_;
};

template <class T>
std::string refuse_outside(const std::string& text, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= low && value <= high) return {};
  return fmt::format("wants a whole number from {} to {}, got '{}'", low, high, text);
}

std::string refuse_rate(const std::string& text) {
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error == std::errc{} && end == text.data() + text.size() && std::isfinite(rate) && rate > 0) return {};
  return fmt::format("wants a number above 0, got '{}'", text);
}

std::string refuse_other(const std::string& text, const std::vector<std::string>& choices) {
  if (std::ranges::find(choices, text) != choices.end()) return {};
  return fmt::format("wants {}, got '{}'", fmt::join(choices, " or "), text);
}

}  // namespace

std::string group(const Words& words, const char* name, const char* example) {
  return fmt::format("{:<12}./weft {} {}", name, words.program, example);
}

template <class T>
CLI::Option* add_number(CLI::App& app, const char* name, T& value, T low, T high, const std::string& about) {
  return app.add_option(name, value, about)->type_name("N")->check([low, high](const std::string& text) {
    return refuse_outside(text, low, high);
  });
}
template CLI::Option* add_number(CLI::App&, const char*, int&, int, int, const std::string&);
template CLI::Option* add_number(CLI::App&, const char*, int64_t&, int64_t, int64_t, const std::string&);
template CLI::Option* add_number(CLI::App&, const char*, uint64_t&, uint64_t, uint64_t, const std::string&);

CLI::Option* add_path(CLI::App& app, const char* name, std::string& value, const char* kind, const char* about) {
  return app.add_option(name, value, about)->type_name(kind)->check([](const std::string& text) {
    return text.empty() || text.starts_with("--") ? fmt::format("wants a path, got '{}'", text) : std::string();
  });
}

CLI::Option* add_choice(CLI::App& app, const char* name, std::string& value, std::vector<std::string> choices,
                        const std::string& about) {
  return app.add_option(name, value, about)
      ->type_name("NAME")
      ->check([choices = std::move(choices)](const std::string& text) { return refuse_other(text, choices); });
}

void add_options(CLI::App& app, Options& o, const Words& words, const std::function<void(const std::string&)>& model,
                 const std::function<void(const std::string&)>& more_training) {
  app.formatter(std::make_shared<Help>(words.program));
  app.footer("Exit codes: 0 done, 2 a wrong option or input, 3 no data found, 1 anything else.");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);

  const std::string data_group = group(words, "Data", words.data_example);
  add_path(app, "--data", o.data, "FOLDER", words.data)->group(data_group);
  add_number(app, "--workers", o.workers, 0, 64, fmt::format("Threads that prepare batches ahead [{}]", o.workers))
      ->group(data_group);

  const std::string model_group = group(words, "Model", words.model_example);
  model(model_group);
  add_path(app, "--load", o.load, "FILE", "Weights to start from (.safetensors)")->group(model_group);
  app.add_flag("--eval-only", o.eval_only, "Only test the weights of --load")->group(model_group)->needs("--load");

  std::vector<std::string> optimizers, rates;
  for (const optim::Entry& entry : optim::table()) {
    optimizers.emplace_back(entry.name);
    rates.push_back(fmt::format("{} {:g}", entry.name, entry.usual_lr));
  }
  const std::string training = group(words, "Training", words.train_example);
  add_number<int64_t>(app, "--epochs", o.epochs, 0, 100'000,
                      fmt::format("Passes over the training {} [{}]", words.samples,
                                  words.epochs.empty() ? fmt::format("{}", o.epochs) : words.epochs))
      ->group(training);
  std::string batch = fmt::format("{} a step [{}]", words.samples, o.batch);
  batch[0] = static_cast<char>(std::toupper(batch[0]));
  add_number<int64_t>(app, "--batch", o.batch, 1, words.most_batch, batch)->group(training);
  app.add_option("--optimizer", o.optimizer, fmt::format("{} [{}]", fmt::join(optimizers, ", "), o.optimizer))
      ->type_name("NAME")
      ->group(training);
  app.add_option("--lr", o.lr,
                 fmt::format("{}\n[{}]", words.rate,
                             words.rates.empty() ? fmt::format("{}", fmt::join(rates, ", ")) : words.rates))
      ->type_name("RATE")
      ->check(refuse_rate)
      ->group(training);
  if (more_training) more_training(training);
  app.add_option("--amp", o.amp, "Mixed precision: bf16 or fp16 for products, weights and all else in f32")
      ->type_name("DTYPE")
      ->check([](const std::string& text) {
        return refuse_other(text, {"bf16", "fp16"});
      })
      ->group(training);
  add_number<uint64_t>(app, "--seed", o.seed, 0, UINT64_MAX,
                       fmt::format("Decides the first weights and the order of {} [{}]", words.samples, o.seed))
      ->group(training);

  const std::string machine = group(words, "Machine", "--threads 4");
  app.add_option("--device", o.device, "cpu, cuda, cuda:N, or auto: a CUDA device where there is one [auto]")
      ->type_name("NAME")
      ->group(machine);
  app.add_flag("--tf32", o.tf32, "Lets a GPU round the factors of f32 products to 10 bits, for speed")->group(machine);
  app.add_flag("--cuda-graphs", o.cuda_graphs, "Captures a training step once and replays it as one launch")
      ->group(machine);
  add_number(app, "--threads", o.threads, 1, 4096, "Threads of the kernels [$OMP_NUM_THREADS, or one a core]")
      ->group(machine);
  app.add_flag("--no-flush-denormals", o.keep_denormals,
               "Compute with subnormal floats, not with 0 in their place; slower")
      ->group(machine);

  const std::string files = group(words, "Files", words.files_example);
  add_path(app, "--save", o.save, "FILE", "Writes the trained weights (.safetensors)")->group(files);
  add_path(app, "--result", o.result, "FILE", "Writes the final figures (JSON)")->group(files);
  app.set_help_flag("-h,--help", "Prints this")->group(files);
}

int run_main(CLI::App& app, const Words& words, int argc, char** argv, const std::function<void()>& run) {
  const auto complain = [&words](int code, const std::exception& error, const char* hint = "") {
    fmt::print(stderr, "{}: {}{}\n", words.program, error.what(), hint);
    return code;
  };
  try {
    app.parse(argc, argv);
    run();
    return 0;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    return complain(2, error, " (--help lists the options)");
  } catch (const data::NoData& error) {
    return complain(3, error);
  } catch (const weft::Error& error) {
    return complain(2, error);
  } catch (const std::exception& error) {
    return complain(1, error);
  }
}

}  // namespace weft::apps
