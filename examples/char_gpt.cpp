// A GPT that learns a text file character by character, and then writes such text.
// Run: build/release/bin/example_char_gpt FILE. On 1.1 MB of Shakespeare the loss of held-out text falls from 4.2 to
// below 2.6 in the first 100 of the default model's 500 steps (3.2 million parameters). Without a file it learns a few
// sentences of its own. --help lists the options.
#include <weft.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

using namespace weft;

constexpr const char* kOwnText =
    "The shuttle goes from left to right, the weft goes over one thread and under the next. The shuttle comes back "
    "from "
    "right to left, the weft goes under one thread and over the next. So the cloth grows row by row, and no thread of "
    "it is lost. ";

struct Options {
  std::string file, save, start = "\n";
  int64_t steps = 500, batch = 8, length = 256, width = 256, heads = 4, layers = 4, write = 500, seed = 1, threads = 0;
  double lr = 1e-3, dropout = 0.1, temperature = 0.8;
  bool amp = false;
};

/// A text as numbers of its characters (bytes), in order of their values.
struct Text {
  std::string characters;
  std::vector<int64_t> ids;

  explicit Text(const std::string& text) : characters(text) {
    std::ranges::sort(characters);
    characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
    for (const char c : text) ids.push_back(id(c));
  }
  int64_t size() const { return static_cast<int64_t>(ids.size()); }
  int64_t id(char c) const {
    const auto at = std::ranges::find(characters, c);
    return at == characters.end() ? 0 : at - characters.begin();
  }
  /// `count` pieces of length + 1 from random places in [first, last): [count, length + 1].
  Tensor pieces(int64_t count, int64_t length, int64_t first, int64_t last) const {
    std::vector<int64_t> values;
    for (const int64_t at : randint(first, last - length, {count}).to_vector<int64_t>())
      values.insert(values.end(), ids.begin() + at, ids.begin() + at + length + 1);
    return from(values, {count, length + 1});
  }
};

Tensor loss_of(models::Gpt2& model, const Tensor& pieces) {
  const int64_t length = pieces.size(1) - 1;
  return nn::cross_entropy(model(pieces.narrow(1, 0, length)).flatten(0, 1), pieces.narrow(1, 1, length).flatten());
}

/// Continues `start` by drawing one character after another.
std::string written(models::Gpt2& model, const Text& text, const Options& o) {
  const NoGrad no_grad;
  model.eval();
  std::vector<int64_t> ids;
  for (const char c : o.start) ids.push_back(text.id(c));
  for (int64_t i = 0; i < o.write; ++i) {
    const auto seen = std::min(static_cast<int64_t>(ids.size()), o.length);
    const Tensor last = from(std::vector<int64_t>(ids.end() - seen, ids.end()), {1, seen});
    const Tensor logits = linear(model.hidden(last).select(1, seen - 1), model.wte.weight);
    const std::vector<double> p = softmax(logits / o.temperature).to_vector<double>();
    double left = rand({1}).item();
    size_t next = 0;
    while (next + 1 < p.size() && (left -= p[next]) >= 0) ++next;
    ids.push_back(static_cast<int64_t>(next));
  }
  std::string out;
  for (const int64_t i : ids) out += text.characters[static_cast<size_t>(i)];
  return out;
}

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

int run(const Options& o) {
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  manual_seed(static_cast<uint64_t>(o.seed));
  std::string own;
  for (int i = 0; i < 40; ++i) own += kOwnText;
  const Text text(o.file.empty() ? own : contents(o.file));
  const int64_t held_out = text.size() - std::max(text.size() / 10, o.length + 2);
  WEFT_CHECK(held_out > o.length + 1, "char_gpt", "{} characters are too few for pieces of {}", text.size(), o.length);

  models::Gpt2 model({.vocabulary = static_cast<int64_t>(text.characters.size()),
                      .length = o.length,
                      .width = o.width,
                      .heads = o.heads,
                      .layers = o.layers,
                      .dropout = o.dropout});
  std::printf("%s: %s characters, %zu different   %s parameters\n", o.file.empty() ? "its own text" : o.file.c_str(),
              train::with_commas(text.size()).c_str(), text.characters.size(),
              train::with_commas(model.parameter_count()).c_str());
  optim::AdamW adam(model.parameters(), {.lr = o.lr, .weight_decay = 0.1});
  const optim::Schedule rate = optim::schedule::one_cycle(o.lr, {.steps = o.steps});
  const Tensor test = text.pieces(16, o.length, held_out, text.size());
  double first = 0, sum = 0, test_loss = 0;
  const int64_t report = std::max<int64_t>(1, o.steps / 10);
  for (int64_t step = 0; step < o.steps; ++step) {
    const Autocast precision(o.amp ? bf16 : f32);
    adam.set_lr(rate.at(step));
    const Tensor loss = loss_of(model, text.pieces(o.batch, o.length, 0, held_out));
    adam.zero_grad();
    loss.backward();
    optim::clip_grad_norm(model.parameters(), 1);
    adam.step();
    sum += loss.item();
    if (step == 0) first = sum;
    if ((step + 1) % report != 0) continue;
    const nn::Evaluation evaluation(model);
    const NoGrad no_grad;
    test_loss = loss_of(model, test).item();
    std::printf("step %5lld   loss %.3f   held-out %.3f\n", static_cast<long long>(step + 1),
                sum / static_cast<double>(report), test_loss);
    std::fflush(stdout);
    sum = 0;
  }
  if (!o.save.empty()) save(o.save, model.state_dict());
  std::printf("\n%s\n", written(model, text, o).c_str());
  return o.steps < 10 || test_loss < first ? 0 : 1;
}

int main(int argc, char** argv) {
  Options o;
  CLI::App app("A GPT of characters: learns a text file and writes on.");
  app.add_option("FILE", o.file, "the text; without it a few sentences")->check(CLI::ExistingFile);
  app.add_option("--steps", o.steps, "updates")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--batch", o.batch, "pieces of text in an update")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--length", o.length, "characters of a piece")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--width", o.width, "of the model")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--heads", o.heads, "divide the width")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--layers", o.layers)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--dropout", o.dropout)->check(CLI::Range(0.0, 0.9))->capture_default_str();
  app.add_option("--lr", o.lr, "highest learning rate")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--amp", o.amp, "products in bf16");
  app.add_option("--write", o.write, "characters written at the end")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--start", o.start, "what is written on");
  app.add_option("--temperature", o.temperature, "lower is more likely text")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--save", o.save, "file for the weights (.safetensors)");
  app.add_option("--seed", o.seed)->capture_default_str();
  app.add_option("--threads", o.threads, "0: all")->check(CLI::NonNegativeNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
