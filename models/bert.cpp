// BERT.
#include "models/bert.h"

#include "autograd/ops/attention.h"
#include "autograd/ops/dropout.h"
#include "autograd/ops/elementwise.h"
#include "autograd/ops/matmul.h"
#include "models/pretrained.h"
#include "nn/attention.h"
#include "nn/init.h"
#include "tensor/safetensors.h"

namespace weft::models {
namespace {

NameRules name_rules(bool masked_lm, bool pooler) {
  NameRules rules{.ignored_suffixes = {"embeddings.position_ids"},
                  .renamed_suffixes = {{"LayerNorm.gamma", "LayerNorm.weight"}, {"LayerNorm.beta", "LayerNorm.bias"}}};
  if (masked_lm) {
    rules.ignored_prefixes = {"bert.pooler.", "cls.predictions.decoder.", "cls.seq_relationship."};
    return rules;
  }
  rules.prefixes = {"bert."};
  rules.ignored_prefixes = {"cls."};
  if (!pooler) rules.ignored_prefixes.push_back("pooler.");
  return rules;
}

/// Heads that attend: queries, keys and values by products of their own.
struct SelfAttention : nn::Module {
  explicit SelfAttention(const BertOptions& o)
      : heads(o.heads),
        dropout(o.dropout),
        query(add<BertLinear>("query", {.in = o.width, .out = o.width})),
        key(add<BertLinear>("key", {.in = o.width, .out = o.width})),
        value(add<BertLinear>("value", {.in = o.width, .out = o.width})) {}

  Tensor operator()(const Tensor& x, const Tensor& mask) {
    Scope scope(scope_id());
    const auto by_head = [&](const Tensor& y) {
      return y.reshape({y.size(0), y.size(1), heads, y.size(2) / heads}).transpose(1, 2);
    };
    return attention(by_head(query(x)), by_head(key(x)), by_head(value(x)),
                     {.mask = mask, .dropout = training() ? dropout : 0})
        .transpose(1, 2)
        .flatten(2);
  }

  int64_t heads;
  double dropout;
  BertLinear &query, &key, &value;
};

struct Attention : nn::Module {
  explicit Attention(const BertOptions& o)
      : self(add<SelfAttention>("self", o)),
        output(add<BertOutput>("output", {.in = o.width, .width = o.width, .dropout = o.dropout, .eps = o.eps})) {}
  SelfAttention& self;
  BertOutput& output;
};

struct Intermediate : nn::Module {
  explicit Intermediate(const BertOptions& o)
      : dense(add<BertLinear>("dense", {.in = o.width, .out = o.hidden, .activation = Activation::gelu})) {}
  BertLinear& dense;
};

struct Layer : nn::Module {
  explicit Layer(const BertOptions& o)
      : attention(add<Attention>("attention", o)),
        intermediate(add<Intermediate>("intermediate", o)),
        output(add<BertOutput>("output", {.in = o.hidden, .width = o.width, .dropout = o.dropout, .eps = o.eps})) {}

  Tensor operator()(const Tensor& x, const Tensor& mask) {
    Scope scope(scope_id());
    const Tensor attended = attention.output(x, attention.self(x, mask));
    return output(attended, intermediate.dense(attended));
  }

  Attention& attention;
  Intermediate& intermediate;
  BertOutput& output;
};

/// Layers by their number.
struct Layers : nn::Module {
  explicit Layers(const BertOptions& o) {
    for (int64_t i = 0; i < o.layers; ++i) all.push_back(&add<Layer>(std::to_string(i), o));
  }
  std::vector<Layer*> all;
};

struct Transform : nn::Module {
  explicit Transform(const BertOptions& o)
      : dense(add<BertLinear>("dense", {.in = o.width, .out = o.width, .activation = Activation::gelu})),
        norm(add<nn::LayerNorm>("LayerNorm", {.sizes = {o.width}, .eps = o.eps})) {}
  BertLinear& dense;
  nn::LayerNorm& norm;
};

struct Predictions : nn::Module {
  explicit Predictions(const BertOptions& o)
      : bias(parameter("bias", zeros({o.vocabulary}))), transform(add<Transform>("transform", o)) {}
  Tensor& bias;
  Transform& transform;

 protected:
  void reset_own_parameters() override { nn::init::zeros(bias); }
};

}  // namespace

int64_t BertOptions::parameters() const {
  const int64_t linear = width * width + width, norm = 2 * width;
  const int64_t layer = 4 * linear + 2 * width * hidden + hidden + width + 2 * norm;
  return (vocabulary + length + types) * width + norm + layers * layer + (pooler ? linear : 0);
}

void BertLinear::reset_own_parameters() {
  nn::init::normal(weight, 0, 0.02);
  nn::init::zeros(bias);
}

BertOutput::BertOutput(Options o)
    : options(o),
      dense(add<BertLinear>("dense", {.in = o.in, .out = o.width})),
      norm(add<nn::LayerNorm>("LayerNorm", {.sizes = {o.width}, .eps = o.eps})) {}

Tensor BertOutput::operator()(const Tensor& x, const Tensor& h) {
  Scope scope(scope_id());
  return norm(dropout_add(linear(h, dense.weight), dense.bias, x, options.dropout, training()));
}

struct Bert::Embeddings : nn::Module {
  explicit Embeddings(const BertOptions& o)
      : words(add<nn::Embedding>("word_embeddings",
                                 {.rows = o.vocabulary, .width = o.width, .padding_idx = 0, .deviation = 0.02})),
        positions(add<nn::LearnedPositions>("position_embeddings", {.length = o.length, .width = o.width})),
        types(add<nn::Embedding>("token_type_embeddings", {.rows = o.types, .width = o.width, .deviation = 0.02})),
        norm(add<nn::LayerNorm>("LayerNorm", {.sizes = {o.width}, .eps = o.eps})) {}
  nn::Embedding& words;
  nn::LearnedPositions& positions;
  nn::Embedding& types;
  nn::LayerNorm& norm;
};

struct Bert::Encoder : nn::Module {
  explicit Encoder(const BertOptions& o) : layer(add<Layers>("layer", o)) {}
  Layers& layer;
};

struct Bert::Pooler : nn::Module {
  explicit Pooler(const BertOptions& o) : dense(add<BertLinear>("dense", {.in = o.width, .out = o.width})) {}
  BertLinear& dense;
};

Bert::Bert(Options o)
    : options(o), embeddings_(add<Embeddings>("embeddings", o)), encoder_(add<Encoder>("encoder", o)) {
  WEFT_CHECK(o.heads > 0 && o.width % o.heads == 0, "bert", "{} heads do not divide a width of {}", o.heads, o.width);
  if (o.pooler) pooler_ = &add<Pooler>("pooler", o);
}
Bert::~Bert() = default;

Tensor Bert::forward(const Tensor& ids) { return run(ids, {}, {}); }

Tensor Bert::operator()(const Tensor& ids, const Tensor& mask, const Tensor& types) {
  Scope scope(scope_id());
  return run(ids, mask, types);
}

Tensor Bert::run(const Tensor& ids, const Tensor& mask, const Tensor& types) {
  WEFT_CHECK(ids.dim() == 2, "bert", "wants ids [B, T], got {}", str(ids.sizes()));
  Embeddings& e = embeddings_;
  const Tensor of_type = types.defined() ? e.types(types) : e.types.weight.narrow(0, 0, 1);
  Tensor x = dropout(e.norm(e.positions(e.words(ids)) + of_type), options.dropout, training());
  for (Layer* const layer : encoder_.layer.all) x = (*layer)(x, mask);
  return x;
}

Tensor Bert::pooled(const Tensor& hidden) {
  WEFT_CHECK(pooler_, "bert", "was built without its pooler");
  return tanh(pooler_->dense(hidden.select(1, 0)));
}

const Tensor& Bert::word_embeddings() const { return embeddings_.words.weight; }

void Bert::load_pretrained(const std::string& path) {
  load_by_name(*this, load(path), name_rules(false, options.pooler));
}

struct BertForMaskedLm::Head : nn::Module {
  explicit Head(const BertOptions& o) : predictions(add<Predictions>("predictions", o)) {}
  Predictions& predictions;
};

namespace {

BertOptions without_pooler(BertOptions o) {
  o.pooler = false;
  return o;
}

}  // namespace

BertForMaskedLm::BertForMaskedLm(Options o) : bert(add<Bert>("bert", without_pooler(o))), cls_(add<Head>("cls", o)) {}
BertForMaskedLm::~BertForMaskedLm() = default;

Tensor BertForMaskedLm::forward(const Tensor& ids) { return logits(bert(ids)); }

Tensor BertForMaskedLm::operator()(const Tensor& ids, const Tensor& mask, const Tensor& types) {
  Scope scope(scope_id());
  return logits(bert(ids, mask, types));
}

Tensor BertForMaskedLm::logits(const Tensor& hidden) {
  Predictions& p = cls_.predictions;
  return linear(p.transform.norm(p.transform.dense(hidden)), bert.word_embeddings(), p.bias);
}

void BertForMaskedLm::load_pretrained(const std::string& path) {
  load_by_name(*this, load(path), name_rules(true, false));
}

}  // namespace weft::models
