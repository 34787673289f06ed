// Transformer models: published sizes, and that they learn. Their values are compared with others in tests/golden.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/autograd.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/index.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/reduce.h"
#include "models/bert.h"
#include "models/gpt2.h"
#include "models/text_transformer.h"
#include "optim/adam.h"
#include "tensor/random.h"
#include "tests/expect_error.h"

namespace weft {
namespace {

using models::BertOptions;
using models::Gpt2Options;

TEST(Gpt2, PublishedSizes) {
  EXPECT_EQ(Gpt2Options::small().parameters(), 124'439'808);
  EXPECT_EQ(Gpt2Options::medium().parameters(), 354'823'168);
  EXPECT_EQ(Gpt2Options::large().parameters(), 774'030'080);
  EXPECT_EQ(Gpt2Options::xl().parameters(), 1'557'611'200);
  for (const Gpt2Options& o : {Gpt2Options{.vocabulary = 31, .length = 7, .width = 12, .heads = 3, .layers = 3},
                               Gpt2Options{.vocabulary = 5, .length = 40, .width = 8, .heads = 1, .layers = 1}})
    EXPECT_EQ(models::Gpt2(o).parameter_count(), o.parameters());
}

TEST(Gpt2, NamesAndLayoutOfTheFiles) {
  models::Gpt2 model({.vocabulary = 11, .length = 6, .width = 8, .heads = 2, .layers = 1});
  std::vector<std::string> names;
  for (const Named& p : model.parameters()) names.push_back(p.name + " " + str(p.value.sizes()));
  EXPECT_EQ(names, (std::vector<std::string>{
                       "wte.weight [11, 8]", "wpe.weight [6, 8]", "h.0.ln_1.weight [8]", "h.0.ln_1.bias [8]",
                       "h.0.attn.c_attn.weight [8, 24]", "h.0.attn.c_attn.bias [24]", "h.0.attn.c_proj.weight [8, 8]",
                       "h.0.attn.c_proj.bias [8]", "h.0.ln_2.weight [8]", "h.0.ln_2.bias [8]",
                       "h.0.mlp.c_fc.weight [8, 32]", "h.0.mlp.c_fc.bias [32]", "h.0.mlp.c_proj.weight [32, 8]",
                       "h.0.mlp.c_proj.bias [8]", "ln_f.weight [8]", "ln_f.bias [8]"}));
}

TEST(Gpt2, LearnsASequenceByHeart) {
  manual_seed(5);
  models::Gpt2 model({.vocabulary = 7, .length = 12, .width = 16, .heads = 2, .layers = 2, .dropout = 0});
  optim::AdamW adam(model.parameters(), {.lr = 1e-2});
  const Tensor ids = randint(0, 7, {2, 12});
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    const Tensor loss = cross_entropy(model(ids.narrow(1, 0, 11)).flatten(0, 1), ids.narrow(1, 1, 11).reshape({22}));
    model.zero_grad();
    loss.backward();
    adam.step();
    (step == 0 ? first : last) = loss.item();
  }
  EXPECT_NEAR(first, std::log(7), 0.2);
  EXPECT_LT(last, 0.1);
}

TEST(Gpt2, TooLongTextsAreRefused) {
  models::Gpt2 model({.vocabulary = 7, .length = 4, .width = 8, .heads = 2, .layers = 1});
  EXPECT_NE(error_of([&] {
              model(zeros({1, 5}, i64));
            }).find("Gpt2.wpe: wants [B, T, 8] with at most 4"),
            std::string::npos);
  EXPECT_NE(error_of([] { models::Gpt2({.vocabulary = 7, .width = 8, .heads = 3, .layers = 1}); }).find("3 heads"),
            std::string::npos);
}

TEST(Bert, PublishedSizes) {
  EXPECT_EQ(BertOptions::base().parameters(), 109'482'240);
  EXPECT_EQ(BertOptions::large().parameters(), 335'141'888);
  BertOptions tiny{.vocabulary = 19, .length = 9, .types = 3, .width = 12, .heads = 3, .layers = 2, .hidden = 20};
  EXPECT_EQ(models::Bert(tiny).parameter_count(), tiny.parameters());
  tiny.pooler = false;
  EXPECT_EQ(models::Bert(tiny).parameter_count(), tiny.parameters());
  BertOptions base = BertOptions::base(), large = BertOptions::large();
  base.pooler = large.pooler = false;
  EXPECT_EQ(base.parameters(), 108'891'648);
  EXPECT_EQ(large.parameters(), 334'092'288);
  // The head of masked tokens has a dense layer, a norm and a bias a token; its products are the embedding's.
  EXPECT_EQ(models::BertForMaskedLm(tiny).parameter_count() - tiny.parameters(), 12 * 12 + 12 + 2 * 12 + 19);
}

TEST(Bert, WithoutPoolerSaysSo) {
  models::Bert model({.vocabulary = 19, .width = 8, .heads = 2, .layers = 1, .hidden = 8, .pooler = false});
  EXPECT_NE(error_of([&] { model.pooled(model(zeros({1, 3}, i64))); }).find("without its pooler"), std::string::npos);
}

models::TextTransformerOptions small_text() {
  return {.vocabulary = 20, .length = 10, .width = 16, .heads = 2, .layers = 1, .hidden = 16, .dropout = 0};
}

// Field case 33: a text that is empty after cleaning.
TEST(TextTransformer, PaddingAloneIsFinite) {
  models::TextTransformer model(small_text());
  Tensor ids = randint(1, 20, {3, 10});
  ids.select(0, 1).fill_(0);
  const Tensor y = model(ids);
  EXPECT_EQ(y.sizes(), Shape({3, 1}));
  EXPECT_EQ(y.detach().select(0, 1).to_vector<float>(), model.fc.bias.to_vector<float>());
  sum(square(y)).backward();
  for (const Named& p : model.parameters()) EXPECT_TRUE(all(lt(abs(p.value.grad()), 1e30)).item() != 0) << p.name;
}

TEST(TextTransformer, ATextDoesNotSeeItsNeighbours) {
  models::TextTransformer model(small_text());
  const Tensor ids = randint(1, 20, {3, 10});
  const Tensor all = model(ids).detach(), one = model(ids.narrow(0, 2, 1)).detach();
  EXPECT_NEAR(all.to_vector<float>()[2], one.to_vector<float>()[0], 1e-5);
}

TEST(TextTransformer, LearnsWhetherAWordIsThere) {
  manual_seed(8);
  models::TextTransformer model(small_text());
  optim::AdamW adam(model.parameters(), {.lr = 5e-3});
  double last = 1;
  for (int step = 0; step < 120; ++step) {
    Tensor ids = randint(2, 20, {32, 10});
    ids.narrow(1, 0, 3).fill_(0);
    Tensor words = ids.narrow(0, 0, 16).narrow(1, 3 + step % 7, 1);
    words.fill_(7);
    const Tensor there = any(eq(ids, 7), {1}, true).to(f32);
    const Tensor loss = bce_with_logits(model(ids), there);
    model.zero_grad();
    loss.backward();
    adam.step();
    last = loss.item();
  }
  EXPECT_LT(last, 0.2);
}

}  // namespace
}  // namespace weft
