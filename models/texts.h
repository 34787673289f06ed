// Models that classify texts, by name, for command lines.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "nn/module.h"

namespace weft::models::texts {

struct Options {
  int64_t vocabulary = 20000;
  int64_t max_length = 400;        ///< for models whose positions have parameters
  bool sparse_embeddings = false;  ///< row gradients of the words' table
};

/// Ids [N, L] of i32, padded with 0 on the left → logits [N, 1] of the second of two classes.
struct Entry {
  std::string_view name;
  std::string_view about;
  int64_t usual_epochs;
  double usual_lr;  ///< the highest rate of a one-cycle schedule for AdamW
  bool bucketed;    ///< whether batches of texts of like length are worth it: the time goes with the length
  std::unique_ptr<nn::Module> (*make)(const Options& options);
};

const std::vector<Entry>& table();
/// The entry of a name; throws for an unknown one, listing those there are.
const Entry& find(std::string_view name);

}  // namespace weft::models::texts
