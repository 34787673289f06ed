// Comparison with golden values, and the check that no file is left without a table.
#include "tests/golden/golden.h"

#include <fmt/core.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "tensor/safetensors.h"

namespace weft::testing {

std::map<std::string, GoldenEntry> load_golden(const std::string& stem) {
  std::map<std::string, GoldenEntry> entries;
  for (const Named& tensor : load(fmt::format("{}/{}.safetensors", WEFT_GOLDEN_DATA, stem))) {
    const size_t slash = tensor.name.rfind('/');
    entries[tensor.name.substr(0, slash)][tensor.name.substr(slash + 1)] = tensor.value;
  }
  return entries;
}

void expect_same_names(const std::map<std::string, GoldenEntry>& entries, const std::vector<std::string>& names) {
  std::set<std::string> left;
  for (const auto& [name, entry] : entries) left.insert(name);
  for (const std::string& name : names)
    EXPECT_EQ(left.erase(name), 1u) << name << " has no entry in the file, or two rows in the table";
  for (const std::string& name : left) ADD_FAILURE() << name << " has no row in the table";
}

void expect_near(const Tensor& got, const Tensor& wanted, double allowed, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what << " is undefined";
  ASSERT_EQ(str(got.sizes()), str(wanted.sizes())) << what;
  EXPECT_EQ(is_floating(got.dtype()), is_floating(wanted.dtype())) << what << " is " << name(got.dtype());
  const std::vector<double> g = got.to_vector<double>(), w = wanted.to_vector<double>();
  double largest = 1;
  for (const double v : w)
    if (std::isfinite(v)) largest = std::max(largest, std::fabs(v));
  for (size_t i = 0; i < w.size(); ++i) {
    if (g[i] == w[i] || (std::isnan(g[i]) && std::isnan(w[i]))) continue;
    ASSERT_LE(std::fabs(g[i] - w[i]), allowed * largest)
        << what << ", element " << i << ": got " << g[i] << ", PyTorch has " << w[i];
  }
}

namespace {

void check_row(const GoldenRow& row, const GoldenEntry& entry, DType dtype) {
  const double allowed = dtype == f64 ? row.tolerance.f64 : row.tolerance.f32;
  const auto find = [&](const char* kind, size_t i) {
    const auto found = entry.find(kind + std::to_string(i));
    return found == entry.end() ? Tensor() : found->second;
  };
  const auto in_dtype = [&](const Tensor& x) { return is_floating(x.dtype()) ? x.to(dtype) : x; };

  Tensors inputs;
  for (Tensor x; (x = find("in", inputs.size())).defined();) {
    const bool wants_grad = find("grad", inputs.size()).defined();
    inputs.push_back(in_dtype(x).clone());
    if (wants_grad) inputs.back().requires_grad_();
  }
  const Tensors outputs = row.run(inputs).tensors;
  Tensors roots, upstream;
  size_t count = 0;
  for (; find("out", count).defined(); ++count) {
    ASSERT_LT(count, outputs.size());
    expect_near(outputs[count], find("out", count), allowed, "out" + std::to_string(count));
    if (const Tensor dy = find("dy", count); dy.defined()) {
      roots.push_back(outputs[count]);
      upstream.push_back(in_dtype(dy));
    }
  }
  EXPECT_EQ(count, outputs.size());
  if (roots.empty()) return;
  backward(roots, upstream);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const Tensor grad = find("grad", i); grad.defined())
      expect_near(inputs[i].grad(), grad, allowed, "grad" + std::to_string(i));
}

}  // namespace

void check_golden(const std::string& stem, const std::vector<GoldenRow>& rows) {
  const std::map<std::string, GoldenEntry> entries = load_golden(stem);
  std::vector<std::string> names;
  for (const GoldenRow& row : rows) names.push_back(row.name);
  expect_same_names(entries, names);
  for (const GoldenRow& row : rows) {
    const auto entry = entries.find(row.name);
    if (entry == entries.end()) continue;
    for (const DType dtype : {f64, f32}) {
      SCOPED_TRACE(stem + ": " + row.name + " in " + std::string(name(dtype)));
      EXPECT_NO_THROW(check_row(row, entry->second, dtype));
    }
  }
}

namespace {

TEST(Golden, EveryFileHasATest) {
  std::set<std::string> tests;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s)
    for (int t = 0; t < all.GetTestSuite(s)->total_test_count(); ++t)
      if (all.GetTestSuite(s)->name() == std::string("Golden"))
        tests.insert(all.GetTestSuite(s)->GetTestInfo(t)->name());
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(WEFT_GOLDEN_DATA)) {
    if (file.path().extension() != ".safetensors") continue;
    ++files;
    EXPECT_TRUE(tests.contains(file.path().stem().string())) << file.path().filename() << " is compared with nothing";
    EXPECT_FALSE(load_metadata(file.path()).at("torch").empty());
  }
  EXPECT_GT(files, 0);
}

/// The checker is checked: a value that is a little off, a wrong gradient, a missing row.
TEST(Golden, NoticesDifferences) {
  const Tensor x = from<double>({1, 2, 3}, {3});
  EXPECT_NO_FATAL_FAILURE(expect_near(x, x, 0, "same"));
  ::testing::TestPartResultArray failures;
  {
    ::testing::ScopedFakeTestPartResultReporter catcher(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    expect_near(x, x + 1e-9, 1e-12, "value");
    expect_near(x, x.reshape({1, 3}), 1, "shape");
    expect_same_names({{"here", {}}}, {"elsewhere"});
  }
  EXPECT_EQ(failures.size(), 4);  // two of the last: one name on each side
}

}  // namespace

}  // namespace weft::testing
