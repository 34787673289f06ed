// The IMDB job: data, model, training with the best epoch chosen on reviews that were held out, one test at the end;
// and the judgement of texts.
#include "apps/imdb/job.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/elementwise.h"
#include "data/sample_reviews.h"
#include "data/split.h"
#include "models/texts.h"
#include "optim/optimizers.h"
#include "tensor/safetensors.h"
#include "train/device.h"
#include "train/progress.h"

namespace weft::imdb {
namespace {

using train::with_commas;

constexpr double kHeldOut = 0.1;  // of the training reviews

/// A model with the words that it knows, as one file.
struct Trained {
  std::string name;
  int64_t max_length = 0;
  data::Vocabulary vocabulary;
  std::vector<Named> weights;
};

void save_trained(const std::string& path, const Trained& t) {
  std::vector<Named> all = t.weights;
  all.push_back({"vocabulary", t.vocabulary.to_tensor()});
  save(path, all, {{"model", t.name}, {"max_length", fmt::format("{}", t.max_length)}});
}

Trained load_trained(const std::string& path) {
  Trained t;
  for (Named& entry : load(path)) {
    if (entry.name == "vocabulary")
      t.vocabulary = data::Vocabulary::from_tensor(entry.value);
    else
      t.weights.push_back(std::move(entry));
  }
  const Metadata metadata = load_metadata(path);
  const auto entry = [&](const char* key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string() : found->second;
  };
  t.name = entry("model");
  const std::string length = entry("max_length");
  t.max_length = length.empty() || length.size() > 9 ? 0 : std::atoll(length.c_str());
  WEFT_CHECK(!t.name.empty() && t.max_length > 0 && t.vocabulary.size() > data::Vocabulary::kFirstWord, "--load",
             "{} is not a file that imdb --save wrote: it has no vocabulary, model name or length", path);
  return t;
}

std::unique_ptr<nn::Module> make_model(const Trained& t, bool sparse_embeddings = false) {
  auto model = models::texts::find(t.name).make(
      {.vocabulary = t.vocabulary.size(), .max_length = t.max_length, .sparse_embeddings = sparse_embeddings});
  if (!t.weights.empty()) model->load_state_dict(t.weights);
  return model;
}

/// Prints how likely each text is praise.
void judge(const Options& o, const Trained& t, nn::Module& model, Device device) {
  const NoGrad no_grad;
  const nn::Evaluation evaluation(model);
  const Autocast autocast(train::amp_dtype(o.amp));
  const auto show = [&](const std::string& text) {
    const std::vector<int32_t> ids = t.vocabulary.encode(text, t.max_length);
    const Tensor x = from<int32_t>(ids, {1, t.max_length}).to(device);
    fmt::print("{:.3f}  {}\n", sigmoid(model(x)).item(), text);
  };
  for (const std::string& text : o.texts) {
    if (text != "-") {
      show(text);
      continue;
    }
    for (std::string line; std::getline(std::cin, line);) show(line);
  }
}

/// The reviews, encoded as the model reads them. Where there are none, those that come with Weft.
data::Imdb read_data(const Options& o, const Trained& t) {
  const data::TextOptions text{.vocabulary = o.vocabulary, .max_length = t.max_length, .pad_to_longest = *o.bucket};
  std::string folder;
  try {
    folder = data::find_imdb(o.data);
  } catch (const data::NoData& none) {
    fmt::print(stderr, "imdb: {}\nimdb: goes on with a few reviews that were made up: the figures mean nothing\n",
               none.what());
    return data::sample_imdb(text);
  }
  data::Imdb data = data::imdb(folder, {.text = text});
  WEFT_CHECK(t.weights.empty() ||
                 data.vocabulary.to_tensor().to_vector<uint8_t>() == t.vocabulary.to_tensor().to_vector<uint8_t>(),
             "--load", "the weights know {} words of another training set than {}",
             t.vocabulary.size() - data::Vocabulary::kFirstWord, folder);
  return data;
}

/// `indices` with the shortest reviews first.
data::Subset by_length(const data::TextDataset& all, std::vector<int64_t> indices) {
  const std::vector<int64_t> lengths = all.lengths();
  std::ranges::stable_sort(indices, {}, [&](int64_t i) { return lengths[static_cast<size_t>(i)]; });
  return {all, std::move(indices)};
}

/// A copy of all weights, which training leaves alone.
std::vector<Named> copy_of(const nn::Module& model) {
  std::vector<Named> copies = model.state_dict();
  for (Named& entry : copies) entry.value = entry.value.clone();
  return copies;
}

}  // namespace

void run(const Options& options) {
  Options o = options;
  WEFT_CHECK(o.texts.empty() || !o.load.empty(), "texts", "to judge '{}', name the weights with --load", o.texts[0]);
  Trained trained;
  trained.name = o.model;
  trained.max_length = o.max_length;
  if (!o.load.empty()) {
    trained = load_trained(o.load);
    o.vocabulary = trained.vocabulary.size();
  }
  const models::texts::Entry& entry = models::texts::find(trained.name);
  if (o.epochs < 0) o.epochs = entry.usual_epochs;
  if (!o.bucket) o.bucket = entry.bucketed;
  if (o.eval_only) o.epochs = 0;
  const double lr = o.lr > 0 ? o.lr : o.optimizer == "adamw" ? entry.usual_lr : optim::find(o.optimizer).usual_lr;
  const auto make_optimizer = optim::find(o.optimizer).make;
  const Device device = apps::set_up(o);

  if (!o.texts.empty()) {
    const std::unique_ptr<nn::Module> model = make_model(trained);
    model->to(device);
    return judge(o, trained, *model, device);
  }

  const data::Imdb data = read_data(o, trained);
  if (trained.weights.empty()) trained.vocabulary = data.vocabulary;
  const std::unique_ptr<nn::Module> model = make_model(trained, o.sparse_embeddings);
  model->to(device);
  auto [train_indices, held_out] = data::hold_out(data.train.labels(), kHeldOut, o.seed);
  const data::Subset training(data.train, std::move(train_indices));
  // The order makes no difference to scores, and little padding is quick.
  const data::Subset validation = by_length(data.train, std::move(held_out));
  const data::Subset test = by_length(data.test, data::sequential(data.test.size())->indices({}));

  fmt::print("{}\n{} to train, {} held out   {} parameters   {}\n", data.report(), with_commas(training.size()),
             with_commas(validation.size()), with_commas(model->parameter_count()),
             apps::describe(o, device, fmt::format("{}, {} {:g}", o.optimizer, o.schedule, lr)));
  std::fflush(stdout);

  apps::Outcome outcome;
  nlohmann::ordered_json accuracies = nlohmann::ordered_json::array();
  int64_t best_epoch = 0;
  const auto started = std::chrono::steady_clock::now();
  if (o.epochs > 0) {
    const auto optimizer = make_optimizer(model->parameters());
    optimizer->set_lr(lr);
    train::FitOptions fit = apps::fit_options(o, device);
    if (*o.bucket) fit.sampler = data::bucketed(data.train.lengths(training.indices()), {.batch = o.batch});
    if (o.schedule == "one-cycle")
      fit.schedule = [lr](int64_t steps) { return optim::schedule::one_cycle(lr, {.steps = steps}); };
    double best = -1;
    const auto after_epoch = [&](int64_t epoch) {
      const double accuracy =
          apps::test(o, *model, train::binary_classification, validation, device, "held-out reviews").accuracy;
      accuracies.push_back(accuracy);
      if (accuracy > best) {
        best = accuracy;
        best_epoch = epoch;
        trained.weights = copy_of(*model);
      }
      return fmt::format("held out {:.2f} %", accuracy);
    };
    outcome.fitted = train::fit(*model, train::binary_classification, training, *optimizer, fit, after_epoch);
    model->load_state_dict(trained.weights);
    if (o.epochs > 1) fmt::print("epoch {} is best on the held-out reviews, and is what is tested\n", best_epoch);
  }
  outcome.test = apps::test(o, *model, train::binary_classification, test, device, "test reviews");
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (!o.save.empty()) {
    trained.weights = model->state_dict();
    save_trained(o.save, trained);
  }
  apps::finish(o, outcome, {{"model", trained.name}, {"held_out_accuracy", accuracies}, {"best_epoch", best_epoch}});
}

}  // namespace weft::imdb
