// The table of optimizers.
#include "optim/optimizers.h"

#include "optim/adadelta.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"
#include "tensor/error.h"
#include "tensor/find_named.h"

namespace weft::optim {
namespace {

template <class T>
std::unique_ptr<Optimizer> build(std::vector<Named> parameters) {
  return std::make_unique<T>(std::move(parameters));
}
std::unique_ptr<Optimizer> build_sgd(std::vector<Named> parameters) {
  return std::make_unique<SGD>(std::move(parameters), SgdOptions{.momentum = 0.9});
}

}  // namespace

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      {"adamw", 2e-3, build<AdamW>},     {"adam", 2e-3, build<Adam>},       {"sgd", 0.1, build_sgd},
      {"rmsprop", 1e-3, build<RMSprop>}, {"adagrad", 1e-2, build<Adagrad>}, {"adadelta", 1.0, build<Adadelta>},
  };
  return entries;
}

const Entry& find(std::string_view name) { return find_named(table(), name, "optim", "optimizer"); }

}  // namespace weft::optim
