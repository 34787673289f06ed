// oneDNN behind the few calls that kernels need: descriptions of tensors, a cache of primitives, and running one with
// reorders where its layout differs from ours. Works with oneDNN 2.x and 3.x.
#pragma once

#include <array>
#include <dnnl.hpp>
#include <functional>
#include <string_view>

#include "tensor/kernel_args.h"
#include "tensor/tensor.h"

namespace weft::onednn {

/// What a primitive was made for; the thread count is added by `prepared`.
class Key {
 public:
  Key& add(int64_t value) {
    values_.at(count_++) = value;
    return *this;
  }
  Key& add(const Shape& shape) {
    add(shape.size());
    for (int64_t v : shape) add(v);
    return *this;
  }
  Key& add(Pair pair) { return add(pair.h).add(pair.w); }
  bool operator==(const Key& other) const { return values_ == other.values_; }
  size_t hash() const;

 private:
  std::array<int64_t, 48> values_{};
  size_t count_ = 0;
};

/// A primitive and the layouts that it wants.
struct Prepared {
  dnnl::primitive primitive;
  dnnl::memory::desc source, weights, bias, destination, scratchpad;
  bool plain_loops = false;  // oneDNN has nothing better than its reference implementation
};

/// One argument of a run: where our data is and how it lies there. `wanted` is the primitive's layout.
struct Argument {
  int id;
  void* data;
  dnnl::memory::desc ours;
  const dnnl::memory::desc* wanted;
  bool output = false;
};

const dnnl::engine& engine();
dnnl::memory::data_type type_of(DType dtype);
/// Whether this CPU multiplies in `dtype` itself: f32 always, bf16 with AVX512_BF16; others go through f32.
bool multiplies(DType dtype);
/// Whether a primitive is oneDNN's reference implementation, which is correct and very slow.
inline bool is_plain_loops(const dnnl::primitive_desc_base& pd) {
  return std::string_view(pd.impl_info_str()).starts_with("ref");
}
/// A tensor's own layout.
dnnl::memory::desc describe(const Tensor& x);
dnnl::memory::desc describe(const Shape& sizes, const Shape& strides, DType dtype);
/// The same sizes in whatever layout the primitive likes best.
dnnl::memory::desc describe_any(const Shape& sizes, DType dtype);
/// Scratch memory from the caller, and the activation applied to the result.
dnnl::primitive_attr attributes(Activation activation);

/// The primitive for `key`, made by `make` the first time; valid until this thread asks for another one.
const Prepared& prepared(Key key, const std::function<Prepared()>& make);
/// Runs it on the calling thread's team.
void run(const Prepared& prepared, std::initializer_list<Argument> arguments);

}  // namespace weft::onednn
