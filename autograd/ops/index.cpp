// Operations by index, joining and cutting, masks, the largest values: value and gradient.
#include "autograd/ops/index.h"

#include <algorithm>

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

constexpr const char* kDimension = "a dimension";

TensorOptions options_of(const Tensor& x) { return {x.dtype(), x.device()}; }

void check_index_operand(const char* op, const Tensor& x, const Tensor& index) {
  WEFT_CHECK(index.dtype() == i64 || index.dtype() == i32, op, "the index must be i64 or i32, got {}",
             name(index.dtype()));
  WEFT_CHECK(x.device() == index.device(), op, "the tensor is on {}, the index on {}", name(x.device()),
             name(index.device()));
}

void check_source(const char* op, const Tensor& x, const Tensor& source) {
  WEFT_CHECK(x.dtype() == source.dtype(), op, "the tensor is {}, the source {}", name(x.dtype()), name(source.dtype()));
  WEFT_CHECK(x.device() == source.device(), op, "the tensor is on {}, the source on {}", name(x.device()),
             name(source.device()));
  WEFT_CHECK(x.dtype() != boolean, op, "bool values cannot be added");
}

/// Checks an index of x's dimensions for gather and scatter_add; the dimension counted from the front.
int64_t check_along(const char* op, const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim(op, dim, x.dim());
  check_index_operand(op, x, index);
  bool fits = index.dim() == x.dim();
  for (int64_t i = 0; fits && i < x.dim(); ++i) fits = i == d || index.sizes()[i] <= x.sizes()[i];
  WEFT_CHECK(fits, op, "an index {} does not fit {} along dimension {}", str(index.sizes()), str(x.sizes()), d);
  kernels::check_index(index, x.sizes()[d], op, kDimension);
  return d;
}

/// Checks a list of slices for index_select and index_add; the dimension counted from the front.
int64_t check_slices(const char* op, const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = wrap_dim(op, dim, x.dim());
  check_index_operand(op, x, index);
  WEFT_CHECK(index.dim() == 1, op, "the index wants 1 dimension, got {}", str(index.sizes()));
  kernels::check_index(index, x.sizes()[d], op, kDimension);
  return d;
}

Tensor gathered(const Tensor& x, int64_t dim, const Tensor& index) {
  Tensor y = empty(index.sizes(), options_of(x));
  kernels::gather(x, dim, index, y);
  return y;
}

/// Zeros of `sizes` with dy added at the indices.
Tensor scattered(const Tensor& dy, int64_t dim, const Tensor& index, const Shape& sizes) {
  Tensor dx = zeros(sizes, options_of(dy));
  kernels::scatter_add(dy, dim, index, dx);
  return dx;
}

Tensor selected(const Tensor& x, int64_t dim, const Tensor& index) {
  Shape sizes = x.sizes(), strides = Shape::filled(x.dim(), 0);
  sizes[dim] = index.numel();
  strides[dim] = index.strides()[0];
  return gathered(x, dim, raw::view(index, sizes, strides, index.offset()));
}

}  // namespace

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = check_along("gather", x, dim, index);
  return record("gather", {x}, gathered(x, d, index),
                [sizes = x.sizes(), d, index = SavedTensor(index)](const Tensor& dy) -> Grads {
                  return {scattered(dy, d, index(), sizes)};
                });
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  if (autocast::mixed(x, source)) return scatter_add(autocast::widened(x), dim, index, autocast::widened(source));
  const int64_t d = check_along("scatter_add", x, dim, index);
  check_source("scatter_add", x, source);
  WEFT_CHECK(source.sizes() == index.sizes(), "scatter_add", "the source {} and the index {} differ in shape",
             str(source.sizes()), str(index.sizes()));
  Tensor y = raw::clone(x);
  kernels::scatter_add(source, d, index, y);
  return record("scatter_add", {x, source}, y,
                [d, index = SavedTensor(index), wanted = needs_grad(source)](const Tensor& dy) -> Grads {
                  return {dy, wanted ? gathered(dy, d, index()) : Tensor()};
                });
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int64_t d = check_slices("index_select", x, dim, index);
  return record("index_select", {x}, selected(x, d, index),
                [sizes = x.sizes(), d, index = SavedTensor(index)](const Tensor& dy) -> Grads {
                  Tensor dx = zeros(sizes, options_of(dy));
                  kernels::index_add(dy, d, index(), dx);
                  return {dx};
                });
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  if (autocast::mixed(x, source)) return index_add(autocast::widened(x), dim, index, autocast::widened(source));
  const int64_t d = check_slices("index_add", x, dim, index);
  check_source("index_add", x, source);
  Shape wanted_sizes = x.sizes();
  wanted_sizes[d] = index.numel();
  WEFT_CHECK(source.sizes() == wanted_sizes, "index_add", "the source must be {}, got {}", str(wanted_sizes),
             str(source.sizes()));
  Tensor y = raw::clone(x);
  kernels::index_add(source, d, index, y);
  return record("index_add", {x, source}, y,
                [d, index = SavedTensor(index), wanted = needs_grad(source)](const Tensor& dy) -> Grads {
                  return {dy, wanted ? selected(dy, d, index()) : Tensor()};
                });
}

namespace {

void check_parts(const char* op, const std::vector<Tensor>& parts) {
  WEFT_CHECK(!parts.empty(), op, "there is nothing to join");
  for (size_t i = 1; i < parts.size(); ++i) {
    WEFT_CHECK(parts[i].dtype() == parts[0].dtype(), op, "part 0 is {}, part {} is {}", name(parts[0].dtype()), i,
               name(parts[i].dtype()));
    WEFT_CHECK(parts[i].device() == parts[0].device(), op, "part 0 is on {}, part {} on {}", name(parts[0].device()), i,
               name(parts[i].device()));
  }
}

/// Room for a result of `sizes`, channels-last where x is.
Tensor empty_as(const Tensor& x, const Shape& sizes) {
  return x.is_channels_last() && !x.is_contiguous() ? empty_channels_last(sizes, options_of(x))
                                                    : empty(sizes, options_of(x));
}

std::vector<bool> wanted_gradients(const std::vector<Tensor>& parts) {
  std::vector<bool> wanted;
  for (const Tensor& x : parts) wanted.push_back(needs_grad(x));
  return wanted;
}

/// Views of the given lengths as the outputs of one node, whose rule writes all their gradients into one tensor.
std::vector<Tensor> cut(const char* op, const Tensor& x, int64_t d, const std::vector<int64_t>& lengths) {
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (int64_t length : lengths) {
    parts.push_back(raw::narrow(x, d, start, length));
    start += length;
  }
  record_many(op, {x}, parts,
              [sizes = x.sizes(), options = options_of(x), d, lengths](const std::vector<Tensor>& dys) -> Grads {
                Tensor dx = empty(sizes, options);
                int64_t at = 0;
                for (size_t i = 0; i < dys.size(); ++i) {
                  Tensor part = raw::narrow(dx, d, at, lengths[i]);
                  if (dys[i].defined())
                    kernels::copy(dys[i], part);
                  else
                    kernels::fill(part, 0);
                  at += lengths[i];
                }
                return {dx};
              });
  return parts;
}

}  // namespace

Tensor cat(const std::vector<Tensor>& parts, int64_t dim) {
  if (autocast::mixed(parts)) return cat(autocast::widened(parts), dim);
  check_parts("cat", parts);
  const int64_t d = wrap_dim("cat", dim, parts[0].dim());
  Shape sizes = parts[0].sizes();
  std::vector<int64_t> lengths;
  sizes[d] = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Shape others = parts[i].sizes();
    if (others.size() > d) others[d] = parts[0].sizes()[d];
    WEFT_CHECK(others == parts[0].sizes(), "cat", "part 0 is {}, part {} is {}: only dimension {} may differ",
               str(parts[0].sizes()), i, str(parts[i].sizes()), d);
    lengths.push_back(parts[i].sizes()[d]);
    sizes[d] += lengths.back();
  }
  Tensor y = empty_as(parts[0], sizes);
  int64_t start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Tensor room = raw::narrow(y, d, start, lengths[i]);
    kernels::copy(parts[i], room);
    start += lengths[i];
  }
  return record("cat", std::span<const Tensor>(parts), y,
                [d, lengths, wanted = wanted_gradients(parts)](const Tensor& dy) -> Grads {
                  Grads grads;
                  int64_t at = 0;
                  for (size_t i = 0; i < lengths.size(); ++i) {
                    grads.push_back(wanted[i] ? raw::narrow(dy, d, at, lengths[i]) : Tensor());
                    at += lengths[i];
                  }
                  return grads;
                });
}

Tensor stack(const std::vector<Tensor>& parts, int64_t dim) {
  if (autocast::mixed(parts)) return stack(autocast::widened(parts), dim);
  check_parts("stack", parts);
  const int64_t d = wrap_dim("stack", dim, parts[0].dim() + 1);
  for (size_t i = 1; i < parts.size(); ++i)
    WEFT_CHECK(parts[i].sizes() == parts[0].sizes(), "stack", "part 0 is {}, part {} is {}", str(parts[0].sizes()), i,
               str(parts[i].sizes()));
  Shape sizes = parts[0].sizes();
  sizes.insert(d, static_cast<int64_t>(parts.size()));
  Tensor y = empty(sizes, options_of(parts[0]));
  for (size_t i = 0; i < parts.size(); ++i) {
    Tensor room = raw::select(y, d, static_cast<int64_t>(i));
    kernels::copy(parts[i], room);
  }
  return record("stack", std::span<const Tensor>(parts), y,
                [d, wanted = wanted_gradients(parts)](const Tensor& dy) -> Grads {
                  Grads grads;
                  for (size_t i = 0; i < wanted.size(); ++i)
                    grads.push_back(wanted[i] ? raw::select(dy, d, static_cast<int64_t>(i)) : Tensor());
                  return grads;
                });
}

std::vector<Tensor> split_sizes(const Tensor& x, const std::vector<int64_t>& lengths, int64_t dim) {
  const int64_t d = wrap_dim("split", dim, x.dim());
  int64_t total = 0;
  for (int64_t length : lengths) {
    WEFT_CHECK(length >= 0, "split", "a length cannot be negative: {}", length);
    total += length;
  }
  WEFT_CHECK(total == x.sizes()[d], "split", "the lengths add up to {}, dimension {} of {} has {}", total, d,
             str(x.sizes()), x.sizes()[d]);
  return cut("split", x, d, lengths);
}

std::vector<Tensor> split(const Tensor& x, int64_t length, int64_t dim) {
  const int64_t d = wrap_dim("split", dim, x.dim());
  WEFT_CHECK(length > 0, "split", "wants a length of at least 1, got {}", length);
  std::vector<int64_t> lengths;
  for (int64_t left = x.sizes()[d]; left > 0; left -= length) lengths.push_back(std::min(left, length));
  if (lengths.empty()) lengths.push_back(0);
  return cut("split", x, d, lengths);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t dim) {
  const int64_t d = wrap_dim("chunk", dim, x.dim());
  WEFT_CHECK(count > 0, "chunk", "wants at least 1 part, got {}", count);
  return split(x, std::max<int64_t>(1, x.sizes()[d] / count + (x.sizes()[d] % count != 0)), d);
}

std::vector<Tensor> unbind(const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim("unbind", dim, x.dim());
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < x.sizes()[d]; ++i) parts.push_back(raw::select(x, d, i));
  record_many("unbind", {x}, parts,
              [sizes = x.sizes(), options = options_of(x), d](const std::vector<Tensor>& dys) -> Grads {
                Tensor dx = empty(sizes, options);
                for (size_t i = 0; i < dys.size(); ++i) {
                  Tensor part = raw::select(dx, d, static_cast<int64_t>(i));
                  if (dys[i].defined())
                    kernels::copy(dys[i], part);
                  else
                    kernels::fill(part, 0);
                }
                return {dx};
              });
  return parts;
}

Tensor pad(const Tensor& x, const std::vector<Padding>& paddings, Scalar value) {
  const auto count = static_cast<int64_t>(paddings.size());
  WEFT_CHECK(count <= x.dim(), "pad", "{} paddings for {}", count, str(x.sizes()));
  Shape sizes = x.sizes();
  for (int64_t i = 0; i < count; ++i) {
    const auto [before, after] = paddings[static_cast<size_t>(i)];
    WEFT_CHECK(before >= 0 && after >= 0, "pad", "a padding cannot be negative: ({}, {}); use narrow", before, after);
    sizes[x.dim() - count + i] += before + after;
  }
  auto inside = [paddings, count](const Tensor& padded, const Shape& wanted) {
    Tensor part = padded;
    for (int64_t i = 0, d = wanted.size() - count; i < count; ++i, ++d)
      part = raw::narrow(part, d, paddings[static_cast<size_t>(i)].before, wanted[d]);
    return part;
  };
  Tensor y = empty_as(x, sizes);
  kernels::fill(y, value);
  Tensor middle = inside(y, x.sizes());
  kernels::copy(x, middle);
  return record("pad", {x}, y,
                [inside, wanted = x.sizes()](const Tensor& dy) -> Grads { return {raw::clone(inside(dy, wanted))}; });
}

Tensor flip(const Tensor& x, int64_t dim) {
  const int64_t n = x.sizes()[wrap_dim("flip", dim, x.dim())];
  Tensor order = empty({n}, {i64, x.device()});
  kernels::arange(order, n - 1, -1);
  return index_select(x, dim, order);
}

Tensor roll(const Tensor& x, int64_t shift, int64_t dim) {
  const int64_t d = wrap_dim("roll", dim, x.dim()), n = x.sizes()[d];
  const int64_t first = n == 0 ? 0 : ((-shift) % n + n) % n;  // comes to the front
  return cat({x.narrow(d, first, n - first), x.narrow(d, 0, first)}, d);
}

Tensor masked_fill(Tensor x, const Tensor& mask, Scalar value) {
  WEFT_CHECK(mask.dtype() == boolean, "masked_fill", "the mask must be bool, got {}", name(mask.dtype()));
  WEFT_CHECK(mask.device() == x.device(), "masked_fill", "the tensor is on {}, the mask on {}", name(x.device()),
             name(mask.device()));
  WEFT_CHECK(broadcast("masked_fill", x.sizes(), mask.sizes()) == x.sizes(), "masked_fill",
             "a mask {} does not fit into {}", str(mask.sizes()), str(x.sizes()));
  const Tensor covered = raw::expand(mask, x.sizes());
  auto filled = [](const Tensor& from, const Tensor& where, Scalar v, Tensor to) {
    kernels::masked_fill(from, where, v, to);
    return to;
  };
  Tensor y = filled(x, covered, value, x.unique() && raw::is_dense(x) ? raw::detach(x) : empty_like(x));
  return record("masked_fill", {x}, y, [filled, covered = SavedTensor(covered)](const Tensor& dy) -> Grads {
    return {filled(dy, covered(), 0, empty_like(dy))};
  });
}

namespace {

/// column - row of the last two dimensions.
Tensor diagonals(const char* op, const Tensor& x) {
  WEFT_CHECK(x.dim() >= 2, op, "wants at least 2 dimensions, got {}", str(x.sizes()));
  const TensorOptions options(i64, x.device());
  return arange(x.size(-1), options) - arange(x.size(-2), options).unsqueeze(1);
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) {
  return masked_fill(x, gt(diagonals("tril", x), static_cast<double>(diagonal)), 0);
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  return masked_fill(x, lt(diagonals("triu", x), static_cast<double>(diagonal)), 0);
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  WEFT_CHECK(ids.dtype() == i64 || ids.dtype() == i32, "one_hot", "the ids must be i64 or i32, got {}",
             name(ids.dtype()));
  WEFT_CHECK(classes > 0, "one_hot", "wants at least 1 class, got {}", classes);
  kernels::check_index(ids, classes, "one_hot", "the classes");
  Shape sizes = ids.sizes();
  sizes.push_back(classes);
  Tensor y = zeros(sizes, {dtype, ids.device()});
  sizes[ids.dim()] = 1;
  kernels::scatter_add(ones(sizes, {dtype, ids.device()}), ids.dim(), raw::unsqueeze(ids, -1), y);
  return y;
}

Ranked topk(const Tensor& x, int64_t k, const TopkOptions& options) {
  const int64_t d = wrap_dim("topk", options.dim, x.dim());
  WEFT_CHECK(k >= 0 && k <= x.sizes()[d], "topk", "{} values are not to be had from dimension {} of {}", k, d,
             str(x.sizes()));
  Shape sizes = x.sizes();
  sizes[d] = k;
  Ranked y{empty(sizes, options_of(x)), empty(sizes, {i64, x.device()})};
  kernels::topk(x, d, options.largest, y.values, y.indices);
  record("topk", {x}, y.values, [sizes = x.sizes(), d, indices = SavedTensor(y.indices)](const Tensor& dy) -> Grads {
    return {scattered(dy, d, indices(), sizes)};
  });
  return y;
}

Ranked sort(const Tensor& x, const SortOptions& options) {
  const int64_t d = wrap_dim("sort", options.dim, x.dim());
  return topk(x, x.sizes()[d], {.dim = d, .largest = options.descending});
}

}  // namespace weft
