// Attention: value and gradient.
#include "autograd/ops/attention.h"

#include <cmath>

#include "autograd/autocast.h"
#include "autograd/record.h"
#include "autograd/work.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// x itself where its last dimension is dense, else a copy.
Tensor dense_rows(const Tensor& x) { return x.size(-1) == 1 || x.strides()[3] == 1 ? x : raw::contiguous(x); }

/// Uninitialised [B, H, T, D] that lies in memory as [B, T, H, D].
Tensor heads_inside(const Shape& s, TensorOptions options) {
  return raw::transpose(empty({s[0], s[2], s[1], s[3]}, options), 1, 2);
}

void check(const char* op, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  WEFT_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, op,
             "wants q [B, H, T, D] and k and v [B, G, S, D], got {}, {} and {}", str(q.sizes()), str(k.sizes()),
             str(v.sizes()));
  WEFT_CHECK(q.dtype() == k.dtype() && q.dtype() == v.dtype() && is_floating(q.dtype()), op,
             "q, k and v have dtypes {}, {} and {}: wants one floating dtype", name(q.dtype()), name(k.dtype()),
             name(v.dtype()));
  WEFT_CHECK(q.device() == k.device() && q.device() == v.device(), op, "q, k and v are on {}, {} and {}",
             name(q.device()), name(k.device()), name(v.device()));
  const Shape &qs = q.sizes(), &ks = k.sizes();
  WEFT_CHECK(ks == v.sizes() && qs[0] == ks[0] && qs[3] == ks[3], op,
             "q {}, k {} and v {} do not fit: batch and width must be equal, and k like v", str(qs), str(ks),
             str(v.sizes()));
  WEFT_CHECK(qs[3] >= 1 && qs[3] <= 256, op, "heads must be 1 to 256 wide, got {}", qs[3]);
  WEFT_CHECK(ks[1] > 0 ? qs[1] % ks[1] == 0 : qs[1] == 0, op, "{} heads cannot share {} groups of keys", qs[1], ks[1]);
  WEFT_CHECK(options.dropout >= 0 && options.dropout <= 1, op, "the probability must lie in [0, 1], got {}",
             options.dropout);
  const Tensor& mask = options.mask;
  WEFT_CHECK(!mask.defined() || (mask.sizes() == Shape{ks[0], ks[2]} && mask.dtype() == boolean), op,
             "the mask of k {} wants bool [{}, {}], got {} {}", str(ks), ks[0], ks[2],
             mask.defined() ? name(mask.dtype()) : "", mask.defined() ? str(mask.sizes()) : "");
}

/// One call of the kernels, and what their backward needs.
struct Call {
  AttentionParameters parameters;
  Philox state;
  SavedTensor q, k, v, mask, out;
  Tensor lse;

  Tensor forward(const char* op, const Tensor& q_any, const Tensor& k_any, const Tensor& v_any,
                 const AttentionOptions& options) {
    check(op, q_any, k_any, v_any, options);
    const Tensor q_rows = dense_rows(q_any), k_rows = dense_rows(k_any), v_rows = dense_rows(v_any);
    const int64_t b = q_rows.size(0), h = q_rows.size(1), t = q_rows.size(2), d = q_rows.size(3), s = k_rows.size(2);
    parameters = {.scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(d))),
                  .causal = options.causal,
                  .dropout = options.dropout};
    Tensor y = heads_inside(q_rows.sizes(), {q_rows.dtype(), q_rows.device()});
    if (options.dropout == 1) return y.zero_();
    lse = empty({b, h, t}, {q_rows.dtype() == f64 ? f64 : f32, q_rows.device()});
    if (parameters.dropout > 0) state = default_generator().take(2 * b * h * ((s + 3) / 4) * t);
    kernels::attention(q_rows, k_rows, v_rows, options.mask, parameters, state, y, lse);
    count_multiply_adds(2 * b * h * t * s * d);
    q = SavedTensor(q_rows);
    k = SavedTensor(k_rows);
    v = SavedTensor(v_rows);
    if (options.mask.defined()) mask = SavedTensor(options.mask);
    out = SavedTensor(y);
    return y;
  }

  void backward(const Tensor& dy, Tensor& dq, Tensor& dk, Tensor& dv) const {
    if (parameters.dropout == 1) {
      for (Tensor* const d : {&dq, &dk, &dv})
        if (d->defined()) d->zero_();
      return;
    }
    kernels::attention_grad(dense_rows(dy), q(), k(), v(), mask.defined() ? mask() : Tensor(), out(), lse, parameters,
                            state, dq, dk, dv);
  }
};

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  if (autocast::narrows(q, k, v))
    return attention(autocast::narrowed(q), autocast::narrowed(k), autocast::narrowed(v), options);
  Call call;
  const Tensor y = call.forward("attention", q, k, v, options);
  return record("attention", {q, k, v}, y,
                [call, qs = q.sizes(), ks = k.sizes(), q_wanted = needs_grad(q), k_wanted = needs_grad(k),
                 v_wanted = needs_grad(v)](const Tensor& dy) -> Grads {
                  const auto gradient = [&](bool wanted, const Shape& sizes) {
                    return wanted ? heads_inside(sizes, {dy.dtype(), dy.device()}) : Tensor();
                  };
                  Tensor dq = gradient(q_wanted, qs), dk = gradient(k_wanted, ks), dv = gradient(v_wanted, ks);
                  call.backward(dy, dq, dk, dv);
                  return {dq, dk, dv};
                });
}

Tensor self_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& options) {
  const char* const op = "self_attention";
  if (autocast::narrows(qkv)) return self_attention(autocast::narrowed(qkv), heads, options);
  WEFT_CHECK(qkv.dim() == 3 && heads > 0 && qkv.size(2) > 0 && qkv.size(2) % (3 * heads) == 0, op,
             "wants [B, T, 3 · heads · D] for {} heads, got {}", heads, str(qkv.sizes()));
  const int64_t batch = qkv.size(0), length = qkv.size(1), width = qkv.size(2) / (3 * heads);
  // [B, T, 3, H, D] as three [B, H, T, D].
  const auto part = [=](const Tensor& packed, int64_t i) {
    return raw::transpose(raw::select(raw::reshape(packed, {batch, length, 3, heads, width}), 2, i), 1, 2);
  };
  const auto joined = [=](const Tensor& y) {
    return raw::reshape(raw::transpose(y, 1, 2), {batch, length, heads * width});
  };
  const Tensor packed = qkv.strides()[2] == 1 ? qkv : raw::contiguous(qkv);
  Call call;
  Tensor y = call.forward(op, part(packed, 0), part(packed, 1), part(packed, 2), options);
  return record(op, {qkv}, joined(y), [call, part, batch, length, heads, width](const Tensor& dy) -> Grads {
    Tensor dqkv = empty({batch, length, 3 * heads * width}, {dy.dtype(), dy.device()});
    Tensor dq = part(dqkv, 0), dk = part(dqkv, 1), dv = part(dqkv, 2);
    call.backward(raw::transpose(raw::reshape(dy, {batch, length, heads, width}), 1, 2), dq, dk, dv);
    return {dqkv};
  });
}

}  // namespace weft
