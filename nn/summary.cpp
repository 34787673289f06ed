// One watched forward, and its table.
#include "nn/summary.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <unordered_map>
#include <unordered_set>

#include "autograd/grad_mode.h"
#include "autograd/work.h"
#include "nn/module.h"

namespace weft::nn {
namespace {

/// 1234567 → "1,234,567".
std::string grouped(int64_t n) {
  const std::string digits = std::to_string(n);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

/// Name of a module below `root`, and how deep it lies.
using Places = std::unordered_map<const Module*, std::pair<std::string, int64_t>>;

void find_places(const Module& module, const std::string& name, int64_t depth, Places& places) {
  places.emplace(&module, std::pair(name, depth));
  for (const auto& child : module.children())
    find_places(*child.module, name.empty() ? child.name : name + "." + child.name, depth + 1, places);
}

/// Makes a row of each call, and books on it what its children do not.
class Recorder : public ForwardObserver {
 public:
  Recorder(Summary& summary, Module& root) : summary_(summary) { find_places(root, "", 0, places_); }

  void before(Module& module, const Tensor&) override {
    const auto [name, depth] = place(module);
    Summary::Row row{.name = name, .type = module.type(), .depth = depth, .failed = true};
    count_parameters(module, row);
    open_.push_back({summary_.rows.size(), weft::multiply_adds()});
    summary_.rows.push_back(row);
  }

  void after(Module&, const Tensor&, const Tensor& y) override {
    const Call call = open_.back();
    open_.pop_back();
    Summary::Row& row = summary_.rows[call.row];
    const int64_t all = weft::multiply_adds() - call.start;
    row.output = y.sizes();
    row.failed = false;
    row.multiply_adds = all - call.children;
    if (open_.empty())
      summary_.multiply_adds = all;
    else
      open_.back().children += all;
  }

  /// Rows of the modules with parameters that were not called.
  void add_unused(Module& root) {
    root.visit([&](Module& module) {
      if (seen_.contains(&module)) return;
      const auto [name, depth] = place(module);
      Summary::Row row{.name = name, .type = module.type(), .depth = depth, .called = false};
      count_parameters(module, row);
      if (row.parameters > 0) summary_.rows.push_back(row);
    });
  }

 private:
  struct Call {
    size_t row;
    int64_t start;         // multiply-adds before it
    int64_t children = 0;  // those of the modules it called
  };

  std::pair<std::string, int64_t> place(const Module& module) const {
    const auto found = places_.find(&module);
    return found == places_.end() ? std::pair(fmt::format("({})", module.path()), int64_t{1}) : found->second;
  }

  void count_parameters(const Module& module, Summary::Row& row) {
    seen_.insert(&module);
    for (const Named& p : module.parameters()) {
      if (p.name.find('.') != p.name.npos) continue;  // a child's
      if (counted_.insert(&p.value.impl()).second)
        row.parameters += p.value.numel();
      else
        row.shared = true;
    }
    summary_.parameters += row.parameters;
  }

  Summary& summary_;
  Places places_;
  std::vector<Call> open_;
  std::unordered_set<const Module*> seen_;
  std::unordered_set<const Tensor::Impl*> counted_;
};

}  // namespace

const Summary::Row& Summary::operator[](const std::string& name) const {
  for (const Row& row : rows)
    if (row.name == name) return row;
  fail("summary", fmt::format("{} has no layer '{}'", model, name));
}

std::string Summary::str() const {
  std::vector<std::array<std::string, 5>> cells{{"layer", "type", "output", "parameters", "multiply-adds"}};
  for (const Row& row : rows) {
    const bool root = row.depth == 0;
    if (root && rows.size() > 1 && row.parameters == 0 && row.multiply_adds == 0 && !row.failed) continue;
    const std::string name = root ? "(" + model + ")" : row.name;
    cells.push_back({name, row.type,
                     row.failed   ? "failed"
                     : row.called ? weft::str(row.output)
                                  : "not called",
                     row.shared ? "shared" : grouped(row.parameters),
                     row.failed || !row.called ? "" : grouped(row.multiply_adds)});
  }
  cells.push_back({"total", "", "", grouped(parameters), grouped(multiply_adds)});
  std::array<size_t, 5> widths{};
  for (const auto& line : cells)
    for (size_t i = 0; i < 5; ++i) widths[i] = std::max(widths[i], line[i].size());
  std::string text = fmt::format("{}, input {}\n", model, weft::str(input));
  for (const auto& line : cells)
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>{}}\n", line[0], widths[0], line[1], widths[1], line[2],
                        widths[2], line[3], widths[3], line[4], widths[4]);
  return text;
}

std::ostream& operator<<(std::ostream& out, const Summary& summary) { return out << summary.str(); }

Summary Module::summary(const Shape& input) {
  const std::vector<Named> own = parameters();
  TensorOptions options;
  if (!own.empty()) options = {own[0].value.dtype(), own[0].value.device()};
  return summary(zeros(input, options));
}

Summary Module::summary(const Tensor& input) {
  Summary summary{.model = type(), .input = input.sizes()};
  NoGrad no_grad;
  const Evaluation evaluation(*this);
  Recorder recorder(summary, *this);
  try {
    (*this)(input);
  } catch (const Error& error) {
    throw Error(fmt::format("{}\n{}", error.what(), summary.str()));
  }
  recorder.add_unused(*this);
  return summary;
}

}  // namespace weft::nn
