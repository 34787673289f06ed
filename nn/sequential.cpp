// Modules made of modules.
#include "nn/sequential.h"

namespace weft::nn {

Module& Sequential::add(std::string_view name, std::function<Tensor(const Tensor&)> f) {
  return add<Function>(name, std::move(f));
}

Tensor Sequential::forward(const Tensor& x) {
  Tensor h = x;
  for (const Child& child : children()) h = (*child.module)(h);
  return h;
}

std::vector<Module*> Sequential::layers() {
  std::vector<Module*> list;
  for (const Child& child : children()) list.push_back(child.module.get());
  return list;
}

}  // namespace weft::nn
