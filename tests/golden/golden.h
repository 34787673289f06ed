// Golden values: what PyTorch computed, in data/<stem>.safetensors (generate.py). Each entry of a file has one row in
// its stem's table, and each row an entry; value and gradients are compared in f64 and in f32.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace weft::testing {

using Tensors = std::vector<Tensor>;
using Inputs = const Tensors&;

/// The results of a row: one tensor, or several.
struct Results {
  Tensors tensors;
  Results(Tensor y) : tensors{std::move(y)} {}
  Results(Tensors ys) : tensors(std::move(ys)) {}
  Results(std::initializer_list<Tensor> ys) : tensors(ys) {}
};

/// Allowed errors, relative to max(1, largest magnitude of the tensor): a sum's error follows its largest terms.
/// f64: both sides round each of at most some hundred terms at 1e-16 and call different exp, erf, … of a few 1e-16.
/// f32: 6e-8 for each rounding, inputs are the same in f32.
struct Tolerance {
  double f64 = 1e-12;
  double f32 = 5e-6;
};

struct GoldenRow {
  std::string name;  ///< "softmax/last": the entry's name in the file
  std::function<Results(Inputs)> run;
  Tolerance tolerance = {};
};

/// The tensors of one file, entry by entry: "in0", "out0", "dy0", "grad0", …
using GoldenEntry = std::map<std::string, Tensor>;
std::map<std::string, GoldenEntry> load_golden(const std::string& stem);

/// Fails where the file and the names differ.
void expect_same_names(const std::map<std::string, GoldenEntry>& entries, const std::vector<std::string>& names);
void expect_near(const Tensor& got, const Tensor& wanted, double allowed, const std::string& what);
/// Runs all rows of a stem.
void check_golden(const std::string& stem, const std::vector<GoldenRow>& rows);

}  // namespace weft::testing
