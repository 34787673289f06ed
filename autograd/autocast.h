// Mixed precision: while an Autocast lives, each op picks its dtype by what it needs, so a model runs in 16 bits where
// that is faster and in f32 where range or precision matter. Parameters stay f32: they are the master weights, and
// their gradients arrive in f32, so optimizers, clipping and checkpoints know nothing of it.
//
// In the 16-bit dtype: matmul, linear, conv1d, conv1d_max, conv2d, attention, lstm, gru. f32 and 16-bit operands are
// cast to it, and so is the result's dtype; sums inside happen in f32, and so does all of a recurrent cell, whose state
// c stays f32.
// In f32, 16-bit operands being cast: softmax, log_softmax, logsumexp, all losses, sum, mean, prod, var, deviation,
// norm, cumsum, exp, log, pow, square, rsqrt, softplus.
// Of two dtypes, in f32: add, sub, mul, div, maximum, minimum, comparisons, where, cat, stack, scatter_add, index_add,
// dropout_add.
// Outside of an Autocast these refuse it, since nothing is promoted silently. In place, `other` may widen to an f32
// tensor, never narrow.
// All else keeps its operand's dtype: relu, other activations, pooling, dropout, embedding, views. Batch, layer, group
// and RMS norm keep it too and compute inside in f32, with f32 weights.
// f64 is never touched, so gradcheck and references stay what they are. Gradient rules run in the dtypes that their
// forward had, whatever Autocast lives around backward().
//
// Sources: Micikevicius et al., "Mixed precision training", ICLR 2018 (arXiv:1710.03740): master weights, products in
// 16 bits with f32 sums, reductions and softmax in f32; the op lists of PyTorch's automatic mixed precision
// (docs.pytorch.org, "CUDA Ops that can autocast to float16 / float32 / promote to the widest input type"), from which
// this differs in the norms alone: there layer and group norm give f32.
#pragma once

#include <unordered_map>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

namespace autocast {
Tensor narrowed(const Tensor& x);
}

/// Of this thread, until the end of the block; they nest, the innermost counts:
///   const Autocast guard(bf16);
///   loss = cross_entropy(model(x), y);
/// f16 reaches 65504 at most and loses what is below 6e-8, so its training wants an optim::LossScaler as well; bf16 has
/// f32's range and wants none.
/// A parameter that several ops use is cast once: casts are kept until the guard's end, and made again after the
/// parameter was written, such as by an optimizer.
class Autocast {
 public:
  /// bf16 or f16; f32 turns it off within the block.
  explicit Autocast(DType dtype = f32);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

  /// What products are computed in on this thread now: f32 where autocast is off.
  static DType dtype();

 private:
  /// A parameter as it was when it was cast, and the result.
  struct Cast {
    Ref<Tensor::Impl> parameter;
    Ref<Storage> storage;
    Ref<RefCounted> leaf;
    uint32_t version = 0;
    bool recorded = false;
    Tensor value;
  };

  friend Tensor autocast::narrowed(const Tensor& x);
  Tensor cast(const Tensor& x);

  Autocast* const outer_;
  const DType outer_dtype_;
  const DType dtype_;
  std::unordered_map<const Tensor::Impl*, Cast> casts_;
};

// For ops, which begin with a line such as
//   if (autocast::narrows(a, b)) return matmul(autocast::narrowed(a), autocast::narrowed(b));
// so that all below it sees one dtype. Where autocast is off it costs one thread-local read.
namespace autocast {

namespace detail {
constexpr bool is_half(DType t) { return t == bf16 || t == f16; }
inline bool is_half(const Tensor& x) { return x.defined() && is_half(x.dtype()); }
/// What `narrowed` would change.
inline bool narrows_to(DType dtype, const Tensor& x) {
  return x.defined() && (x.dtype() == f32 || is_half(x.dtype())) && x.dtype() != dtype;
}
}  // namespace detail

/// Whether an operand of a product has to be cast to the autocast dtype; not beside one of f64.
template <class... T>
bool narrows(const T&... operands) {
  const DType dtype = Autocast::dtype();
  return dtype != f32 && (detail::narrows_to(dtype, operands) || ...) &&
         !((operands.defined() && operands.dtype() == f64) || ...);
}
/// f32 and 16-bit operands in the autocast dtype; others, and undefined ones, as they are. Only where `narrows`.
Tensor narrowed(const Tensor& x);

/// Whether an operand of an op that computes in f32 has 16 bits.
template <class... T>
bool widens(const T&... operands) {
  return Autocast::dtype() != f32 && (detail::is_half(operands) || ...);
}
/// Whether two operands that must share their dtype do not, and autocast makes both f32.
inline bool mixed(const Tensor& a, const Tensor& b) {
  return a.dtype() != b.dtype() && widens(a, b) && a.dtype() != f64 && b.dtype() != f64 && is_floating(a.dtype()) &&
         is_floating(b.dtype());
}
/// 16-bit operands in f32, others as they are.
inline Tensor widened(const Tensor& x) { return detail::is_half(x) ? x.to(f32) : x; }
/// The same for lists.
bool mixed(const std::vector<Tensor>& list);
std::vector<Tensor> widened(const std::vector<Tensor>& list);

}  // namespace autocast
}  // namespace weft
