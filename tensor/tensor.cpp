// Making tensors and reading their values.
#include "tensor/tensor.h"

#include <algorithm>
#include <numeric>

#include "tensor/kernels.h"
#include "tensor/random.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// Without memory yet.
Tensor make_without_storage(const Shape& sizes, const Shape& strides, DType dtype) {
  for (int64_t n : sizes) WEFT_CHECK(n >= 0, "empty", "a size cannot be negative: {}", str(sizes));
  auto impl = make_ref<Tensor::Impl>();
  impl->sizes = sizes;
  impl->strides = strides;
  impl->numel = sizes.numel();
  impl->dtype = dtype;
  int64_t bytes = 0;
  WEFT_CHECK(!__builtin_mul_overflow(impl->numel, size_of(dtype), &bytes), "empty", "{} has more than 2^63 bytes",
             str(sizes));
  return Tensor(std::move(impl));
}

Tensor make(const Shape& sizes, const Shape& strides, TensorOptions options) {
  Tensor x = make_without_storage(sizes, strides, options.dtype);
  x.impl().storage = make_ref<Storage>(x.bytes(), options.device);
  return x;
}

}  // namespace

bool Tensor::is_contiguous() const {
  int64_t step = 1;
  for (int64_t i = dim() - 1; i >= 0; --i) {
    if (sizes()[i] != 1 && strides()[i] != step) return numel() == 0;
    step *= sizes()[i];
  }
  return true;
}

bool Tensor::is_channels_last() const {
  if (dim() != 4) return false;
  const Shape wanted = channels_last_strides(sizes());
  for (int64_t i = 0; i < 4; ++i)
    if (sizes()[i] != 1 && strides()[i] != wanted[i]) return false;
  return true;
}

void Tensor::fail_undefined() { fail("tensor", "used before anything was assigned to it"); }

void Tensor::check_dtype(DType wanted) const {
  WEFT_CHECK(dtype() == wanted, "data", "the tensor is {}, not {}", name(dtype()), name(wanted));
}

double Tensor::item() const {
  WEFT_CHECK(numel() == 1, "item", "wants a tensor of one element, got {}", weft::str(sizes()));
  return to_vector<double>()[0];
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  Tensor out = empty(sizes(), dtype_of<T>::value);
  kernels::copy(*this, out);
  const T* values = out.data<T>();
  return std::vector<T>(values, values + numel());
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<int32_t> Tensor::to_vector() const;
template std::vector<int64_t> Tensor::to_vector() const;
template std::vector<uint8_t> Tensor::to_vector() const;

Tensor empty(const Shape& sizes, TensorOptions options) { return make(sizes, contiguous_strides(sizes), options); }

Tensor empty_pinned(const Shape& sizes, DType dtype, Device device) {
  Tensor x = make_without_storage(sizes, contiguous_strides(sizes), dtype);
  x.impl().storage =
      device == cpu ? make_ref<Storage>(x.bytes(), cpu) : Ref<Storage>(Storage::pinned(x.bytes(), device));
  return x;
}

Tensor empty_channels_last(const Shape& sizes, TensorOptions options) {
  return make(sizes, channels_last_strides(sizes), options);
}

Tensor empty_like(const Tensor& x) { return empty_like(x, x.dtype()); }

Tensor empty_like(const Tensor& x, DType dtype) {
  const TensorOptions options(dtype, x.device());
  return raw::is_dense(x) ? make(x.sizes(), x.strides(), options) : empty(x.sizes(), options);
}

Tensor full(const Shape& sizes, Scalar value, TensorOptions options) {
  Tensor out = empty(sizes, options);
  kernels::fill(out, value);
  return out;
}

Tensor zeros(const Shape& sizes, TensorOptions options) { return full(sizes, 0, options); }
Tensor ones(const Shape& sizes, TensorOptions options) { return full(sizes, 1, options); }

Tensor zeros_like(const Tensor& x) {
  Tensor out = empty_like(x);
  kernels::fill(out, 0);
  return out;
}

Tensor ones_like(const Tensor& x) {
  Tensor out = empty_like(x);
  kernels::fill(out, 1);
  return out;
}

Tensor arange(int64_t n, TensorOptions options) {
  Tensor out = empty({n}, options);
  kernels::arange(out, 0, 1);
  return out;
}

Tensor eye(int64_t n, TensorOptions options) {
  Tensor out = zeros({n, n}, options);
  Tensor diagonal = raw::view(out, {n}, {n + 1}, out.offset());
  kernels::fill(diagonal, 1);
  return out;
}

Tensor randn(const Shape& sizes, TensorOptions options) {
  Tensor out = empty(sizes, options);
  kernels::normal(out, 0, 1, default_generator().take(out.numel()));
  return out;
}

Tensor rand(const Shape& sizes, TensorOptions options, double low, double high) {
  Tensor out = empty(sizes, options);
  kernels::uniform(out, low, high, default_generator().take(out.numel()));
  return out;
}

Tensor randint(int64_t low, int64_t high, const Shape& sizes, Device device) {
  WEFT_CHECK(low < high, "randint", "the range [{}, {}) is empty", low, high);
  Tensor out = empty(sizes, {DType::i64, device});
  kernels::randint(out, low, high, default_generator().take(2 * out.numel()));
  return out;
}

Tensor randperm(int64_t n) {
  Tensor out = arange(n);
  int64_t* order = out.data<int64_t>();
  const Philox draws = default_generator().take(2 * n);
  for (int64_t i = n - 1; i > 0; --i) {  // Fisher and Yates; the 128-bit product keeps the bias below 2^-64
    const PhiloxBlock b = philox(draws.seed, draws.offset + static_cast<uint64_t>(i));
    const uint64_t bits = uint64_t{b[0]} << 32 | b[1];
    const auto j = static_cast<int64_t>(static_cast<unsigned __int128>(bits) * static_cast<uint64_t>(i + 1) >> 64);
    std::swap(order[i], order[j]);
  }
  return out;
}

template <class T>
Tensor from(std::span<const T> values, const Shape& sizes, Device device) {
  WEFT_CHECK(static_cast<int64_t>(values.size()) == sizes.numel(), "from", "{} values do not fill {}", values.size(),
             str(sizes));
  Tensor host = empty(sizes, dtype_of<T>::value);
  std::ranges::copy(values, host.data<T>());
  if (device == cpu) return host;
  Tensor out = empty(sizes, {dtype_of<T>::value, device});
  kernels::copy(host, out);
  return out;
}
template Tensor from(std::span<const float>, const Shape&, Device);
template Tensor from(std::span<const double>, const Shape&, Device);
template Tensor from(std::span<const int32_t>, const Shape&, Device);
template Tensor from(std::span<const int64_t>, const Shape&, Device);
template Tensor from(std::span<const uint8_t>, const Shape&, Device);
template Tensor from(std::span<const bool>, const Shape&, Device);

Tensor scalar(Scalar value, TensorOptions options) { return full({}, value, options); }

}  // namespace weft
