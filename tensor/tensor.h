// The one Tensor type: a shared handle on storage, offset, sizes, strides and dtype, with an opaque slot for autograd
// that nothing below autograd/ looks into. Sizes and indices are 64-bit everywhere.
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/memory.h"
#include "tensor/ref.h"
#include "tensor/shape.h"

namespace weft {

struct BackwardOptions;

class Tensor {
 public:
  struct Impl : RefCounted {
    Ref<Storage> storage;
    int64_t offset = 0;  // in elements
    Shape sizes;
    Shape strides;  // in elements; 0 for an expanded dimension
    int64_t numel = 0;
    DType dtype = DType::f32;
    bool view = false;          // made by a view op: shares storage with the tensor it came from
    uint32_t grad_output = 0;   // which output of `grad_node` this tensor is
    Ref<RefCounted> grad_node;  // autograd's: the op that made this tensor, or its own leaf
  };

  Tensor() = default;
  explicit Tensor(Ref<Impl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return static_cast<bool>(impl_); }
  const Shape& sizes() const { return impl().sizes; }
  const Shape& strides() const { return impl().strides; }
  int64_t dim() const { return impl().sizes.size(); }
  int64_t numel() const { return impl().numel; }
  DType dtype() const { return impl().dtype; }
  Device device() const { return impl().storage->device(); }
  int64_t offset() const { return impl().offset; }
  const Ref<Storage>& storage() const { return impl().storage; }
  int64_t bytes() const { return numel() * size_of(dtype()); }
  /// Size of one dimension, counted from the end where negative.
  int64_t size(int64_t dim) const { return sizes()[wrap_dim("size", dim, this->dim())]; }
  bool is_contiguous() const;
  /// True where a 4-d tensor [N, C, H, W] lies in memory as N, H, W, C.
  bool is_channels_last() const;

  /// First element; the caller keeps to sizes and strides. Throws where T is not the dtype.
  template <class T>
  T* data() const {
    check_dtype(dtype_of<T>::value);
    return static_cast<T*>(impl().storage->data()) + impl().offset;
  }
  void* raw_data() const { return static_cast<char*>(impl().storage->data()) + impl().offset * size_of(impl().dtype); }

  /// The value of a tensor with one element.
  double item() const;
  /// All values in row-major order, converted to T (float, double, int32_t, int64_t, uint8_t).
  template <class T>
  std::vector<T> to_vector() const;
  /// Values as text, the middle of long dimensions as …, and a last line with shape, dtype and device.
  std::string str() const;

  // Differentiable operations and the autograd surface: defined in autograd/tensor_methods.cpp.
  /// A view of [start, start + length) of one dimension.
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const;
  /// A view of one index, without that dimension.
  Tensor select(int64_t dim, int64_t index) const;
  Tensor transpose(int64_t a, int64_t b) const;
  /// The last two dimensions swapped.
  Tensor t() const { return transpose(-2, -1); }
  Tensor permute(const Shape& order) const;
  /// A view with size-1 dimensions repeated without copying; -1 keeps a size.
  Tensor expand(const Shape& sizes) const;
  /// The same values in another shape, one size may be -1; a view where strides allow it, else a copy.
  Tensor reshape(const Shape& sizes) const;
  /// Dimensions first…last as one.
  Tensor flatten(int64_t first = 0, int64_t last = -1) const;
  Tensor squeeze(int64_t dim) const;
  Tensor unsqueeze(int64_t dim) const;
  /// Row-major, this tensor itself where it already is.
  Tensor contiguous() const;
  Tensor clone() const;
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;

  bool requires_grad() const;
  /// Marks a leaf as one whose gradient is wanted.
  Tensor& requires_grad_(bool on = true);
  bool is_leaf() const;
  /// The accumulated gradient of a leaf; undefined where there is none.
  Tensor grad() const;
  /// Makes `grad` the gradient, not a copy of it: backward adds into its memory. Undefined: none.
  void set_grad(const Tensor& grad);
  /// The same values outside of the graph, sharing storage.
  Tensor detach() const;
  /// Adds d this / d leaf to `grad` of every leaf. A tensor of more than one element needs `BackwardOptions::gradient`.
  void backward() const;
  void backward(const BackwardOptions& options) const;

  // In place. Each throws for a leaf that requires a gradient (outside NoGrad) and for memory that overlaps itself.
  Tensor& fill_(Scalar value);
  Tensor& zero_() { return fill_(0); }
  Tensor& copy_(const Tensor& source);
  Tensor& add_(const Tensor& other);
  Tensor& sub_(const Tensor& other);
  Tensor& mul_(const Tensor& other);
  Tensor& div_(const Tensor& other);
  Tensor& add_(double value);
  Tensor& mul_(double value);

  Impl& impl() const {
    if (!impl_) [[unlikely]]
      fail_undefined();
    return *impl_;
  }
  const Ref<Impl>& ref() const { return impl_; }
  /// True where no other handle, view or saved copy can see this memory.
  bool unique() const { return impl_ && impl_->unique() && impl_->storage->unique(); }

 private:
  [[noreturn]] static void fail_undefined();
  void check_dtype(DType wanted) const;

  Ref<Impl> impl_;
};

/// Writes x.str().
std::ostream& operator<<(std::ostream& out, const Tensor& x);

/// A tensor with its name: parameters, state, files.
struct Named {
  std::string name;
  Tensor value;
};

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = {};

  TensorOptions() = default;
  TensorOptions(DType dtype, Device device = {}) : dtype(dtype), device(device) {}
  TensorOptions(Device device) : device(device) {}
};

/// Uninitialised.
Tensor empty(const Shape& sizes, TensorOptions options = {});
/// Uninitialised host memory that `device` reads and writes by itself, for copies that do not wait.
Tensor empty_pinned(const Shape& sizes, DType dtype, Device device);
/// Uninitialised, 4-d [N, C, H, W] with channels innermost.
Tensor empty_channels_last(const Shape& sizes, TensorOptions options = {});
/// Uninitialised, with x's dtype and device, and x's sizes and order of strides where x is dense.
Tensor empty_like(const Tensor& x);
Tensor empty_like(const Tensor& x, DType dtype);
Tensor zeros(const Shape& sizes, TensorOptions options = {});
Tensor ones(const Shape& sizes, TensorOptions options = {});
Tensor full(const Shape& sizes, Scalar value, TensorOptions options = {});
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
/// 0, 1, … n - 1.
Tensor arange(int64_t n, TensorOptions options = DType::i64);
/// Ones on the diagonal of [n, n].
Tensor eye(int64_t n, TensorOptions options = {});
/// Standard normal values.
Tensor randn(const Shape& sizes, TensorOptions options = {});
/// Uniform in [low, high).
Tensor rand(const Shape& sizes, TensorOptions options = {}, double low = 0, double high = 1);
/// Uniform integers in [low, high), i64.
Tensor randint(int64_t low, int64_t high, const Shape& sizes, Device device = {});
/// A random order of 0 … n - 1, i64.
Tensor randperm(int64_t n);
/// A copy of host values, which must be as many as `sizes` says.
template <class T>
Tensor from(std::span<const T> values, const Shape& sizes, Device device = {});
template <class T>
Tensor from(std::initializer_list<T> values, const Shape& sizes, Device device = {}) {
  return from(std::span<const T>(values.begin(), values.size()), sizes, device);
}
template <class T>
Tensor from(const std::vector<T>& values, const Shape& sizes, Device device = {}) {
  return from(std::span<const T>(values), sizes, device);
}
/// A tensor without dimensions.
Tensor scalar(Scalar value, TensorOptions options = {});

}  // namespace weft
