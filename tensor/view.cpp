// Arithmetic on sizes and strides behind every view.
#include "tensor/view.h"

#include <algorithm>
#include <array>

#include "tensor/kernels.h"

namespace weft::raw {
namespace {

/// Strides that show x's memory as `sizes`, or false where only a copy can.
bool strides_for(const Tensor& x, const Shape& sizes, Shape& strides) {
  strides = contiguous_strides(sizes);
  if (x.numel() == 0 || x.is_contiguous()) return true;
  // Walk both shapes from the end; a run of x's dimensions that is evenly spaced can be cut anew.
  int64_t d = sizes.size() - 1;
  int64_t run = 1, step = x.strides().back();
  for (int64_t i = x.dim() - 1; i >= 0; --i) {
    run *= x.sizes()[i];
    const bool run_ends = i == 0 || (x.sizes()[i - 1] != 1 && x.strides()[i - 1] != run * step);
    if (!run_ends) continue;
    int64_t covered = 1;
    while (d >= 0 && (covered < run || sizes[d] == 1)) {
      strides[d] = covered * step;
      covered *= sizes[d--];
    }
    if (covered != run) return false;
    if (i > 0) {
      step = x.strides()[i - 1];
      run = 1;
    }
  }
  return d == -1;
}

}  // namespace

Tensor view(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset) {
  auto impl = make_ref<Tensor::Impl>();
  impl->storage = x.storage();
  impl->offset = offset;
  impl->sizes = sizes;
  impl->strides = strides;
  impl->numel = sizes.numel();
  impl->dtype = x.dtype();
  impl->view = true;
  return Tensor(std::move(impl));
}

Tensor detach(const Tensor& x) { return view(x, x.sizes(), x.strides(), x.offset()); }

Tensor narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const int64_t d = wrap_dim("narrow", dim, x.dim());
  WEFT_CHECK(start >= 0 && length >= 0 && length <= x.sizes()[d] && start <= x.sizes()[d] - length, "narrow",
             "[{}, {} + {}) is not inside dimension {} of {}", start, start, length, d, str(x.sizes()));
  Shape sizes = x.sizes();
  sizes[d] = length;
  return view(x, sizes, x.strides(), x.offset() + start * x.strides()[d]);
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  const int64_t d = wrap_dim("select", dim, x.dim());
  const int64_t n = x.sizes()[d];
  WEFT_CHECK(-n <= index && index < n, "select", "index {} is out of range for dimension {} of {}", index, d,
             str(x.sizes()));
  Shape sizes = x.sizes(), strides = x.strides();
  const int64_t offset = x.offset() + (index < 0 ? index + n : index) * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return view(x, sizes, strides, offset);
}

Tensor transpose(const Tensor& x, int64_t a, int64_t b) {
  a = wrap_dim("transpose", a, x.dim());
  b = wrap_dim("transpose", b, x.dim());
  Shape sizes = x.sizes(), strides = x.strides();
  std::swap(sizes[a], sizes[b]);
  std::swap(strides[a], strides[b]);
  return view(x, sizes, strides, x.offset());
}

Tensor permute(const Tensor& x, const Shape& order) {
  Shape sizes, strides;
  std::array<bool, kMaxDims> seen{};
  WEFT_CHECK(order.size() == x.dim(), "permute", "order {} does not name the {} dimensions of {}", str(order), x.dim(),
             str(x.sizes()));
  for (int64_t position : order) {
    const int64_t d = wrap_dim("permute", position, x.dim());
    WEFT_CHECK(!seen[static_cast<size_t>(d)], "permute", "order {} names dimension {} twice", str(order), d);
    seen[static_cast<size_t>(d)] = true;
    sizes.push_back(x.sizes()[d]);
    strides.push_back(x.strides()[d]);
  }
  return view(x, sizes, strides, x.offset());
}

Tensor expand(const Tensor& x, const Shape& wanted) {
  const int64_t added = wanted.size() - x.dim();
  WEFT_CHECK(added >= 0, "expand", "{} cannot become {}", str(x.sizes()), str(wanted));
  Shape sizes = wanted, strides = Shape::filled(wanted.size(), 0);
  for (int64_t i = 0; i < wanted.size(); ++i) {
    const int64_t have = i < added ? 1 : x.sizes()[i - added];
    if (wanted[i] == -1 && i >= added) sizes[i] = have;
    WEFT_CHECK(sizes[i] >= 0 && (have == sizes[i] || have == 1), "expand", "{} cannot become {}", str(x.sizes()),
               str(wanted));
    if (i >= added && have == sizes[i]) strides[i] = x.strides()[i - added];
  }
  return view(x, sizes, strides, x.offset());
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim("unsqueeze", dim, x.dim() + 1);
  Shape sizes = x.sizes(), strides = x.strides();
  strides.insert(d, d < x.dim() ? sizes[d] * strides[d] : 1);
  sizes.insert(d, 1);
  return view(x, sizes, strides, x.offset());
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  const int64_t d = wrap_dim("squeeze", dim, x.dim());
  WEFT_CHECK(x.sizes()[d] == 1, "squeeze", "dimension {} of {} is not 1", d, str(x.sizes()));
  Shape sizes = x.sizes(), strides = x.strides();
  sizes.erase(d);
  strides.erase(d);
  return view(x, sizes, strides, x.offset());
}

Tensor reshape(const Tensor& x, const Shape& wanted) {
  Shape sizes = wanted;
  int64_t free = -1;
  Shape given;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    WEFT_CHECK(sizes[i] >= -1 && !(sizes[i] == -1 && free >= 0), "reshape", "{} is not a shape", str(wanted));
    if (sizes[i] == -1)
      free = i;
    else
      given.push_back(sizes[i]);
  }
  const int64_t known = given.numel();
  if (free >= 0 && known > 0 && x.numel() % known == 0) sizes[free] = x.numel() / known;
  WEFT_CHECK((free < 0 || sizes[free] >= 0) && sizes.numel() == x.numel(), "reshape", "{} does not fit into {}",
             str(x.sizes()), str(wanted));
  Shape strides;
  if (strides_for(x, sizes, strides)) return view(x, sizes, strides, x.offset());
  return reshape(contiguous(x), sizes);
}

Tensor contiguous(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor out = empty(x.sizes(), {x.dtype(), x.device()});
  kernels::copy(x, out);
  return out;
}

Tensor channels_last(const Tensor& x) {
  if (x.is_channels_last()) return x;
  Tensor out = empty_channels_last(x.sizes(), {x.dtype(), x.device()});
  kernels::copy(x, out);
  return out;
}

Tensor clone(const Tensor& x) {
  Tensor out = empty_like(x);
  kernels::copy(x, out);
  return out;
}

Tensor to(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor out = empty_like(x, dtype);
  kernels::copy(x, out);
  return out;
}

bool overlaps_itself(const Tensor& x) {
  if (x.numel() <= 1) return false;
  // Sorted by stride, each dimension must step over all that lies within the smaller ones. Rejects a few exotic views
  // that do not overlap; none that the library makes.
  int64_t extent = 1;
  for (int64_t d : by_rising_stride(x.strides())) {
    if (x.sizes()[d] == 1) continue;
    if (x.strides()[d] < extent) return true;
    extent += (x.sizes()[d] - 1) * x.strides()[d];
  }
  return false;
}

bool partly_overlap(const Tensor& a, const Tensor& b) {
  if (!(a.storage() == b.storage()) || a.numel() == 0 || b.numel() == 0) return false;
  if (a.offset() == b.offset() && a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides())
    return false;
  auto range = [](const Tensor& x) {
    int64_t last = x.offset();
    for (int64_t i = 0; i < x.dim(); ++i) last += (x.sizes()[i] - 1) * x.strides()[i];
    return std::pair(x.offset() * size_of(x.dtype()), (last + 1) * size_of(x.dtype()));
  };
  const auto [a_begin, a_end] = range(a);
  const auto [b_begin, b_end] = range(b);
  return a_begin < b_end && b_begin < a_end;
}

bool is_dense(const Tensor& x) {
  if (x.is_contiguous()) return true;
  if (overlaps_itself(x)) return false;
  int64_t extent = 1;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (x.strides()[i] < 0) return false;
    extent += (x.sizes()[i] - 1) * x.strides()[i];
  }
  return extent == x.numel();
}

}  // namespace weft::raw
