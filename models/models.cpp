// The table of models.
#include "models/models.h"

#include "models/alexnet.h"
#include "models/lenet5.h"
#include "models/mlp.h"
#include "models/mnist.h"
#include "tensor/find_named.h"

namespace weft::models {
namespace {

template <class Net>
std::unique_ptr<nn::Module> build() {
  return std::make_unique<Net>();
}
template <class Net>
std::unique_ptr<nn::Module> build(typename Net::Options options) {
  return std::make_unique<Net>(std::move(options));
}

}  // namespace

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      {"mnist", "two convolutions and two linear layers, 1.2 million parameters", {1, 28, 28}, build<MnistNet>},
      {"lenet5", "LeNet-5, 62 thousand parameters", {1, 28, 28}, build<LeNet5>},
      {"alexnet",
       "AlexNet on images enlarged to 224×224, 58 million parameters: slow on a CPU",
       {1, 28, 28},
       [] { return build<AlexNet>({.channels = 1, .classes = 10, .enlarge = 8}); }},
      {"mlp", "three linear layers, 235 thousand parameters", {1, 28, 28}, build<MLP>},
  };
  return entries;
}

const Entry& find(std::string_view name) { return find_named(table(), name, "models", "model"); }

std::unique_ptr<nn::Module> make(std::string_view name) { return find(name).make(); }

}  // namespace weft::models
