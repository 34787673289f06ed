// Tiny GPT-2 and BERT models of Hugging Face's `transformers`: their weights load by name, and values, loss and
// gradients are theirs.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/loss.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "tensor/safetensors.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

constexpr size_t kSamples = 4;

std::string path_of(const char* stem) { return fmt::format("{}/{}.safetensors", WEFT_GOLDEN_DATA, stem); }

models::Gpt2Options tiny_gpt2() {
  return {.vocabulary = 37, .length = 12, .width = 16, .heads = 2, .layers = 2, .dropout = 0};
}
models::BertOptions tiny_bert(bool pooler) {
  return {.vocabulary = 41,
          .length = 10,
          .width = 16,
          .heads = 2,
          .layers = 2,
          .hidden = 24,
          .dropout = 0,
          .pooler = pooler};
}

/// Norms and samples of all gradients; `extra` are entries of the file that the model has not.
void expect_gradients(const nn::Module& model, const std::map<std::string, GoldenEntry>& entries, double allowed) {
  size_t there = 0;
  for (const auto& [key, entry] : entries) there += key.starts_with("gradients/");
  const std::vector<Named> parameters = model.parameters();
  EXPECT_EQ(parameters.size(), there);
  for (const Named& p : parameters) {
    SCOPED_TRACE(p.name);
    const GoldenEntry& entry = entries.at("gradients/" + p.name);
    ASSERT_TRUE(p.value.grad().defined());
    const std::vector<double> values = p.value.grad().to_vector<double>();
    double squares = 0;
    for (const double v : values) squares += v * v;
    std::vector<double> picked;
    for (size_t k = 0; k < kSamples; ++k) picked.push_back(values[k * values.size() / kSamples]);
    expect_near(scalar(std::sqrt(squares), f64), entry.at("norm"), allowed, "norm");
    expect_near(from(picked, {kSamples}), entry.at("samples"), allowed, "samples");
  }
}

struct Precision {
  DType dtype;
  double value, gradient;
};
constexpr Precision kPrecisions[] = {{f64, 1e-11, 1e-11}, {f32, 2e-5, 1e-4}};

TEST(Golden, gpt2) {
  const auto entries = load_golden("gpt2");
  const GoldenEntry& all = entries.at("all");
  for (const Precision& p : kPrecisions) {
    SCOPED_TRACE(name(p.dtype));
    models::Gpt2 model(tiny_gpt2());
    model.load_pretrained(path_of("gpt2_weights"));
    model.to(p.dtype);
    const Tensor& ids = all.at("ids");
    const Tensor logits = model(ids);
    expect_near(logits, all.at("logits"), p.value, "logits");
    const Tensor loss = cross_entropy(logits.narrow(1, 0, 8).reshape({16, 37}), ids.narrow(1, 1, 8).reshape({16}));
    expect_near(loss, all.at("loss"), p.value, "loss");
    loss.backward();
    expect_gradients(model, entries, p.gradient);
  }
}

// With and without the prefix, in 16 bits, with what older files have besides.
TEST(Golden, gpt2_weights) {
  std::vector<Named> tensors = load(path_of("gpt2_weights"));
  const std::string path = fmt::format("{}gpt2_weights_test.safetensors", ::testing::TempDir());
  models::Gpt2 wanted(tiny_gpt2());
  wanted.load_pretrained(path_of("gpt2_weights"));
  for (Named& one : tensors) {
    ASSERT_TRUE(one.name.starts_with("transformer.")) << one.name;
    one.name = one.name.substr(12);
  }
  tensors.push_back({"h.0.attn.bias", ones({1, 1, 12, 12})});
  tensors.push_back({"lm_head.weight", zeros({37, 16})});
  save(path, tensors);
  models::Gpt2 plain(tiny_gpt2());
  plain.load_pretrained(path);
  EXPECT_EQ(plain.wte.weight.to_vector<float>(), wanted.wte.weight.to_vector<float>());
  for (Named& one : tensors) one.value = one.value.to(bf16);
  save(path, tensors);
  plain.load_pretrained(path);
  EXPECT_EQ(plain.wte.weight.dtype(), f32);
  EXPECT_EQ(plain.wte.weight.to_vector<float>(), wanted.wte.weight.detach().to(bf16).to_vector<float>());
  std::remove(path.c_str());
}

TEST(Golden, bert) {
  const auto entries = load_golden("bert");
  const GoldenEntry& all = entries.at("all");
  const Tensor &ids = all.at("ids"), &types = all.at("types"), mask = ne(ids, 0);
  for (const Precision& p : kPrecisions) {
    SCOPED_TRACE(name(p.dtype));
    models::BertForMaskedLm model(tiny_bert(true));
    model.load_pretrained(path_of("bert_weights"));
    model.to(p.dtype);
    const Tensor logits = model(ids, mask, types);
    expect_near(logits, all.at("logits"), p.value, "logits");
    const Tensor loss = cross_entropy(logits.reshape({16, 41}), all.at("labels").reshape({16}));
    expect_near(loss, all.at("loss"), p.value, "loss");
    loss.backward();
    expect_gradients(model, entries, p.gradient);
  }
}

TEST(Golden, bert_weights) {
  const auto entries = load_golden("bert");
  const GoldenEntry& all = entries.at("all");
  const Tensor &ids = all.at("ids"), &types = all.at("types"), mask = ne(ids, 0);
  models::Bert model(tiny_bert(true));
  model.load_pretrained(path_of("bert_weights"));
  model.to(f64);
  const Tensor hidden = model(ids, mask, types);
  expect_near(hidden, all.at("hidden"), 1e-11, "hidden");
  expect_near(model.pooled(hidden), all.at("pooled"), 1e-11, "pooled");
  models::Bert without(tiny_bert(false));
  without.load_pretrained(path_of("bert_weights"));
  EXPECT_EQ(model.parameter_count() - without.parameter_count(), 16 * 16 + 16);
}

}  // namespace
}  // namespace weft::testing
