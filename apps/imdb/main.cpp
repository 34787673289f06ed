// Trains a network to tell whether a film review praises or pans, and asks it: ./weft imdb
#include <fmt/ranges.h>

#include "apps/common/command_line.h"
#include "apps/imdb/job.h"
#include "models/texts.h"

int main(int argc, char** argv) {
  using namespace weft;
  std::vector<std::string> about, epochs, rates;
  for (const models::texts::Entry& entry : models::texts::table()) {
    about.push_back(fmt::format("{}: {}", entry.name, entry.about));
    epochs.push_back(fmt::format("{} {}", entry.name, entry.usual_epochs));
    rates.push_back(fmt::format("{} {:g}", entry.name, entry.usual_lr));
  }
  const apps::Words words{
      .program = "imdb",
      .samples = "reviews",
      .data =
          "aclImdb, or the archives of it (.tar.gz), here or in its imdb/; where none is named:\n"
          "$WEFT_DATA, the cache, a download, and last a few made-up reviews",
      .data_example = "--data ~/aclImdb",
      .model_example = "--load reviews.safetensors \"a film that I will not forget\"",
      .train_example = "--model lstm --epochs 5 --lr 0.003",
      .files_example = "--save reviews.safetensors --result figures.json",
      .rate = "Learning rate, the highest of a schedule",
      .most_batch = 25'000,
      .epochs = fmt::format("{}", fmt::join(epochs, ", ")),
      .rates = fmt::format("{}; for adamw", fmt::join(rates, ", ")),
  };
  imdb::Options o;
  CLI::App app("Trains a network to tell whether a film review praises or pans.", "imdb");
  apps::add_options(
      app, o, words,
      [&](const std::string& group) {
        app.add_option("--model", o.model, fmt::format("The network [{}]\n{}", o.model, fmt::join(about, "\n")))
            ->type_name("NAME")
            ->group(group);
        apps::add_number<int64_t>(app, "--vocab", o.vocabulary, 4, 1'000'000,
                                  fmt::format("Ids, of the most frequent words and three others [{}]", o.vocabulary))
            ->group(group);
        apps::add_number<int64_t>(app, "--max-length", o.max_length, 8, 100'000,
                                  fmt::format("Words of a review that count, its last ones [{}]", o.max_length))
            ->group(group);
        app.add_option("texts", o.texts, "with --load, what to judge; - reads lines of standard input")->group(group);
      },
      [&](const std::string& group) {
        apps::add_choice(app, "--schedule", o.schedule, {"one-cycle", "constant"},
                         fmt::format("Course of the learning rate: one-cycle or constant [{}]", o.schedule))
            ->group(group);
        app.add_flag("--sparse-embeddings", o.sparse_embeddings,
                     "Steps only the rows of words that a batch has: their moments alone decay (\"lazy\")")
            ->group(group);
        app.add_flag("--bucket,!--no-bucket", o.bucket, "Batches of reviews of like length: less padding [not for cnn]")
            ->group(group);
      });
  return apps::run_main(app, words, argc, argv, [&] { imdb::run(o); });
}
