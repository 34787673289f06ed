// Lists of gradients.
#include "optim/gradients.h"

#include <set>

#include "autograd/row_gradient.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::optim {

std::vector<Tensor> gradients_of(const std::vector<Named>& parameters) {
  std::vector<Tensor> out;
  std::set<std::pair<const Storage*, int64_t>> seen;
  std::set<const Tensor::Impl*> leaves;
  for (const Named& p : parameters) {
    const bool again = !leaves.insert(&p.value.impl()).second;
    if (const RowGradient rows = row_gradient(p.value); rows.defined() && !again) out.push_back(rows.values);
    Tensor grad = p.value.grad();
    if (!grad.defined() || again) continue;
    const bool shared = grad.numel() > 0 && !seen.insert({grad.storage().get(), grad.offset()}).second;
    if (shared || !raw::is_dense(grad)) {
      Tensor own = empty_like(p.value);
      kernels::copy(grad, own);
      Tensor leaf = p.value;
      leaf.set_grad(own);
      grad = own;
    }
    out.push_back(grad);
  }
  return out;
}

Tensor squared_norm(std::span<const Tensor> list, Device device) {
  for (const Tensor& x : list)
    WEFT_CHECK(x.device() == device, "squared_norm", "the gradients are on {} and {}", name(device), name(x.device()));
  Tensor out = empty({}, {f64, device});
  if (list.empty())
    kernels::fill(out, 0);
  else
    kernels::squared_norm(list, out);
  return out;
}

double squared_norm(std::span<const Tensor> list) {
  return list.empty() ? 0 : squared_norm(list, list.front().device()).item();
}

}  // namespace weft::optim
