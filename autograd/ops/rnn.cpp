// Recurrent layers: value and gradient. The input's part of all gates is one product; a step is a product with the
// state and one fused cell. The gradient goes back through the steps into one tensor of gates, and what is left are
// products over all steps.
#include "autograd/ops/rnn.h"

#include "autograd/autocast.h"
#include "autograd/ops/elementwise.h"
#include "autograd/record.h"
#include "autograd/work.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

/// The steps of one pass, and where each finds the state: state[before(t)] becomes state[after(t)].
struct Steps {
  int64_t count, rows, inputs, width, gates;
  bool reverse;

  int64_t at(int64_t i) const { return reverse ? count - 1 - i : i; }
  int64_t before(int64_t t) const { return reverse ? t + 1 : t; }
  int64_t after(int64_t t) const { return reverse ? t : t + 1; }
  /// All states [count + 1, ..] without the one at the end, or without the one at the start.
  Tensor befores(const Tensor& states) const { return raw::narrow(states, 0, reverse ? 1 : 0, count); }
  Tensor afters(const Tensor& states) const { return raw::narrow(states, 0, reverse ? 0 : 1, count); }
  Tensor flat(const Tensor& x, int64_t width) const { return raw::reshape(x, {count * rows, width}); }
};

Tensor product(const Tensor& a, const Tensor& b, const Tensor& bias = {}) {
  Tensor out = empty({a.sizes()[0], b.sizes()[1]}, {a.dtype(), a.device()});
  kernels::matmul(a, b, bias, Activation::none, out);
  return out;
}

void check_like(const char* op, const char* what, const Tensor& x, const Shape& sizes, DType dtype, Device device) {
  WEFT_CHECK(x.sizes() == sizes && x.dtype() == dtype && x.device() == device, op,
             "{} wants {} {} on {}, got {} {} on {}", what, name(dtype), str(sizes), name(device), name(x.dtype()),
             str(x.sizes()), name(x.device()));
}

DType state_dtype(DType dtype) { return size_of(dtype) == 2 ? f32 : dtype; }

Steps checked(const char* op, int64_t gates, const Tensor& x, const RecurrentWeights& w, const RecurrentOptions& o) {
  WEFT_CHECK(x.dim() == 3 && x.size(0) > 0, op, "wants an input [T, N, in] of at least one step, got {}",
             str(x.sizes()));
  WEFT_CHECK(is_floating(x.dtype()), op, "wants a floating dtype, got {}", name(x.dtype()));
  WEFT_CHECK(w.hidden.dim() == 2 && w.hidden.size(1) > 0, op, "the hidden weight wants [{} H, H], got {}", gates,
             str(w.hidden.sizes()));
  const Steps s{x.size(0), x.size(1), x.size(2), w.hidden.size(1), gates, o.reverse};
  WEFT_CHECK(w.input.dim() == 2 && w.input.size(1) == s.inputs, op,
             "weight wants {} input features, input has {} (input {}, weight {})",
             w.input.dim() == 2 ? w.input.size(1) : 0, s.inputs, str(x.sizes()), str(w.input.sizes()));
  check_like(op, "the input weight", w.input, {gates * s.width, s.inputs}, x.dtype(), x.device());
  check_like(op, "the hidden weight", w.hidden, {gates * s.width, s.width}, x.dtype(), x.device());
  WEFT_CHECK(w.input_bias.defined() == w.hidden_bias.defined(), op, "wants both biases, or none of them");
  if (w.input_bias.defined()) {
    check_like(op, "the input bias", w.input_bias, {gates * s.width}, x.dtype(), x.device());
    check_like(op, "the hidden bias", w.hidden_bias, {gates * s.width}, x.dtype(), x.device());
  }
  if (o.lengths.defined()) {
    check_like(op, "a batch's lengths", o.lengths, {s.rows}, i64, x.device());
    kernels::check_index(o.lengths, s.count + 1, op, "lengths, which go from 0 to all steps,");
  }
  return s;
}

/// States of all steps, the first of them as given.
Tensor states(const char* op, const char* what, const Steps& s, const Tensor& first, int64_t kept, DType dtype,
              Device device) {
  Tensor all = empty({kept, s.rows, s.width}, {dtype, device});
  Tensor start = raw::select(all, 0, s.before(s.at(0)) % kept);
  if (first.defined()) {
    check_like(op, what, first, {s.rows, s.width}, dtype, device);
    kernels::copy(first, start);
  } else {
    kernels::fill(start, 0);
  }
  return all;
}

/// What forward and backward of both layers share.
struct Pass {
  Steps steps;
  SavedTensor x, lengths, input, hidden, h;
  bool wants_x, wants_input, wants_hidden, wants_bias, wants_h;

  Pass(const Steps& s, const Tensor& x, const Tensor& h0, const Tensor& h, const RecurrentWeights& w,
       const Tensor& lengths)
      : steps(s),
        x(x),
        lengths(lengths.defined() ? SavedTensor(lengths) : SavedTensor()),
        input(w.input),
        hidden(w.hidden),
        h(h),
        wants_x(needs_grad(x)),
        wants_input(needs_grad(w.input)),
        wants_hidden(needs_grad(w.hidden)),
        wants_bias(needs_grad(w.input_bias) || needs_grad(w.hidden_bias)),
        wants_h(needs_grad(h0)) {}

  Tensor row_lengths() const { return lengths.defined() ? lengths() : Tensor(); }
  /// A gradient of the last state as it is summed on the way back; zeros where there is none.
  Tensor summed(const Tensor& gradient) const {
    Tensor sum = zeros({steps.rows, steps.width}, {state_dtype(h().dtype()), h().device()});
    if (gradient.defined()) kernels::copy(gradient, sum);
    return sum;
  }
  /// A gradient whose rows kernels can read.
  static Tensor in_rows(const Tensor& dy) {
    return dy.defined() && dy.strides().back() != 1 ? raw::contiguous(dy) : dy;
  }
  /// step(t, dy, dh) for all steps backwards; it fills dgates[t]. Returns d h of the first step but for its carry.
  template <class F>
  Tensor backwards(const Tensor& dy_any, const Tensor& dgates, const F& step) const {
    const Tensor dy = in_rows(dy_any);
    Tensor dh, product_of_step = empty({steps.rows, steps.width}, {dgates.dtype(), dgates.device()});
    for (int64_t i = steps.count - 1; i >= 0; --i) {
      const int64_t t = steps.at(i);
      step(t, dy.defined() ? raw::select(dy, 0, t) : Tensor(), dh);
      if (i == 0 && !wants_h) break;
      kernels::matmul(raw::select(dgates, 0, t), hidden(), Tensor(), Activation::none, product_of_step);
      dh = product_of_step;
    }
    return dh;
  }
  /// Of x, both weights, both biases and h, from the gradients of the input's and the state's part of all gates.
  Grads gradients(const Tensor& by_input, const Tensor& by_state, const Tensor& dh, const Tensor& carry) const {
    const int64_t all = steps.gates * steps.width;
    const Tensor gi = steps.flat(by_input, all), gs = steps.flat(by_state, all);
    Grads grads;
    grads.push_back(wants_x ? raw::reshape(product(gi, input()), x().sizes()) : Tensor());
    grads.push_back(wants_input ? product(raw::transpose(gi, 0, 1), steps.flat(x(), steps.inputs)) : Tensor());
    grads.push_back(wants_hidden ? product(raw::transpose(gs, 0, 1), steps.flat(steps.befores(h()), steps.width))
                                 : Tensor());
    const bool same = gi.storage() == gs.storage();
    const Tensor bias = wants_bias ? sum_to(gi, {all}) : Tensor();
    grads.push_back(bias);
    grads.push_back(!wants_bias ? bias : same ? raw::clone(bias) : sum_to(gs, {all}));
    grads.push_back(wants_h ? (dh.to(carry.dtype()) + carry).to(dh.dtype()) : Tensor());
    return grads;
  }
};

struct LstmRule {
  Pass pass;
  SavedTensor gates, c;
  bool wants_c;

  Grads operator()(const std::vector<Tensor>& dys) const {
    const Steps& s = pass.steps;
    const Tensor lengths = pass.row_lengths(), dgates = empty_like(gates());
    Tensor carry = pass.summed(dys[1]), dc = pass.summed(dys[2]);
    const Tensor dh_first = pass.backwards(dys[0], dgates, [&](int64_t t, const Tensor& dy, const Tensor& dh) {
      Tensor to = raw::select(dgates, 0, t);
      kernels::lstm_cell_grad(dy, dh, raw::select(gates(), 0, t), raw::select(c(), 0, s.before(t)),
                              raw::select(c(), 0, s.after(t)), lengths, t, to, carry, dc);
    });
    Grads grads = pass.gradients(dgates, dgates, dh_first, carry);
    grads.push_back(wants_c ? dc : Tensor());
    return grads;
  }
};

struct GruRule {
  Pass pass;
  SavedTensor gates, hidden;

  Grads operator()(const std::vector<Tensor>& dys) const {
    const Steps& s = pass.steps;
    const Tensor lengths = pass.row_lengths(), by_input = empty_like(gates()), by_state = empty_like(gates());
    Tensor carry = pass.summed(dys[1]);
    const Tensor dh_first = pass.backwards(dys[0], by_state, [&](int64_t t, const Tensor& dy, const Tensor& dh) {
      Tensor to_input = raw::select(by_input, 0, t), to_state = raw::select(by_state, 0, t);
      kernels::gru_cell_grad(dy, dh, raw::select(gates(), 0, t), raw::select(hidden(), 0, t),
                             raw::select(pass.h(), 0, s.before(t)), lengths, t, to_input, to_state, carry);
    });
    return pass.gradients(by_input, by_state, dh_first, carry);
  }
};

Tensor undefined_or_step(const Tensor& x, int64_t t) { return x.defined() ? raw::select(x, 0, t) : Tensor(); }

/// The input's part of all gates, [T, N, G · H].
Tensor input_part(const Steps& s, const Tensor& x, const RecurrentWeights& w) {
  count_multiply_adds(s.count * s.rows * (s.inputs + s.width) * s.gates * s.width);
  const Tensor gates = product(s.flat(x, s.inputs), raw::transpose(w.input, 0, 1),
                               w.input_bias.defined() ? raw::contiguous(w.input_bias) : Tensor());
  return raw::reshape(gates, {s.count, s.rows, s.gates * s.width});
}

/// cell(t, parts, y) for all steps, parts being the state's part of the gates.
template <class F>
void run_steps(const Steps& s, const Tensor& h, const RecurrentWeights& w, const Tensor& y, const F& cell) {
  const Tensor weight = raw::contiguous(raw::transpose(w.hidden, 0, 1));
  const Tensor bias = w.hidden_bias.defined() ? raw::contiguous(w.hidden_bias) : Tensor();
  Tensor parts = empty({s.rows, s.gates * s.width}, {h.dtype(), h.device()});
  for (int64_t i = 0; i < s.count; ++i) {
    const int64_t t = s.at(i);
    kernels::matmul(raw::select(h, 0, s.before(t)), weight, bias, Activation::none, parts);
    Tensor y_step = undefined_or_step(y, t);
    cell(t, parts, y_step);
  }
}

RecurrentWeights narrowed(const RecurrentWeights& w) {
  return {autocast::narrowed(w.input), autocast::narrowed(w.hidden), autocast::narrowed(w.input_bias),
          autocast::narrowed(w.hidden_bias)};
}

}  // namespace

LstmResult lstm(const Tensor& x, const Tensor& h0, const Tensor& c0, const RecurrentWeights& w,
                const RecurrentOptions& options) {
  if (autocast::narrows(x, w.input, w.hidden, w.input_bias, w.hidden_bias, h0))
    return lstm(autocast::narrowed(x), autocast::narrowed(h0), c0, narrowed(w), options);
  const Steps s = checked("lstm", 4, x, w, options);
  const DType cell_dtype = state_dtype(x.dtype());
  const bool recording = needs_grad(x) || needs_grad(w.input) || needs_grad(w.hidden) || needs_grad(w.input_bias) ||
                         needs_grad(w.hidden_bias) || needs_grad(h0) || needs_grad(c0);
  const int64_t kept = recording ? s.count + 1 : 2;  // of c, which nobody else reads
  const Tensor gates = input_part(s, x, w),
               lengths = options.lengths.defined() ? raw::contiguous(options.lengths) : Tensor();
  const Tensor h = states("lstm", "the first h", s, h0, s.count + 1, x.dtype(), x.device());
  const Tensor c = states("lstm", "the first c", s, c0, kept, cell_dtype, x.device());
  const Tensor y = lengths.defined() ? empty({s.count, s.rows, s.width}, {x.dtype(), x.device()}) : Tensor();
  run_steps(s, h, w, y, [&](int64_t t, const Tensor& parts, Tensor& y_step) {
    Tensor g = raw::select(gates, 0, t), c_after = raw::select(c, 0, s.after(t) % kept),
           h_after = raw::select(h, 0, s.after(t));
    kernels::lstm_cell(parts, raw::select(c, 0, s.before(t) % kept), raw::select(h, 0, s.before(t)), lengths, t, g,
                       c_after, h_after, y_step);
  });
  const int64_t last = s.after(s.at(s.count - 1));
  LstmResult result{y.defined() ? y : s.afters(h), raw::select(h, 0, last), raw::select(c, 0, last % kept)};
  record_many("lstm", {x, w.input, w.hidden, w.input_bias, w.hidden_bias, h0, c0}, {result.output, result.h, result.c},
              LstmRule{Pass(s, x, h0, h, w, lengths), SavedTensor(gates), SavedTensor(c), needs_grad(c0)});
  return result;
}

GruResult gru(const Tensor& x, const Tensor& h0, const RecurrentWeights& w, const RecurrentOptions& options) {
  if (autocast::narrows(x, w.input, w.hidden, w.input_bias, w.hidden_bias, h0))
    return gru(autocast::narrowed(x), autocast::narrowed(h0), narrowed(w), options);
  const Steps s = checked("gru", 3, x, w, options);
  const Tensor gates = input_part(s, x, w),
               lengths = options.lengths.defined() ? raw::contiguous(options.lengths) : Tensor();
  const Tensor h = states("gru", "the first h", s, h0, s.count + 1, x.dtype(), x.device());
  const Tensor hidden = empty({s.count, s.rows, s.width}, {x.dtype(), x.device()});
  const Tensor y = lengths.defined() ? empty_like(hidden) : Tensor();
  run_steps(s, h, w, y, [&](int64_t t, const Tensor& parts, Tensor& y_step) {
    Tensor g = raw::select(gates, 0, t), share = raw::select(hidden, 0, t), h_after = raw::select(h, 0, s.after(t));
    kernels::gru_cell(parts, raw::select(h, 0, s.before(t)), lengths, t, g, share, h_after, y_step);
  });
  GruResult result{y.defined() ? y : s.afters(h), raw::select(h, 0, s.after(s.at(s.count - 1)))};
  record_many("gru", {x, w.input, w.hidden, w.input_bias, w.hidden_bias, h0}, {result.output, result.h},
              GruRule{Pass(s, x, h0, h, w, lengths), SavedTensor(gates), SavedTensor(hidden)});
  return result;
}

}  // namespace weft
