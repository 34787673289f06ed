// One step of recurrent cells: a thread takes all gates of V elements of the state.
#include "tensor/cuda/gpu.cuh"
#include "tensor/cuda/math.cuh"

namespace weft::WEFT_GPU {
namespace {

namespace math = gpu_math;

/// Elements of the state that a thread takes at once where there are enough of them to keep the device busy.
constexpr int kCellPack = 4;
constexpr int64_t kManyElements = 16384;

/// The shape of a step. A row ends at its length, if there are lengths.
struct Step {
  int64_t rows, width, t;
  const int64_t* lengths;

  Step(const Tensor& state, const Tensor& lengths, int64_t t)
      : rows(state.sizes()[0]),
        width(state.sizes()[1]),
        t(t),
        lengths(lengths.defined() ? lengths.data<int64_t>() : nullptr) {}
  int64_t elements() const { return rows * width; }
  __device__ bool ended(int64_t n) const { return lengths && t >= lengths[n]; }
};

/// V elements of T in the type that they are computed in.
template <int V, class T>
struct Values {
  compute_t<T> v[V];

  Values() = default;
  __device__ explicit Values(const T* p) {
    const auto pack = load_pack<V>(p);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) v[k] = static_cast<compute_t<T>>(pack.v[k]);
  }
  /// Zeros where there is no tensor.
  __device__ Values(const T* p, int64_t offset) {
    if (p) {
      *this = Values(p + offset);
      return;
    }
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) v[k] = 0;
  }
  __device__ void store(T* p) const {
    Pack<T, V> pack;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) pack.v[k] = static_cast<T>(v[k]);
    store_pack(p, pack);
  }
};

template <int V, class T>
__device__ void store_zeros(T* p) {
  Pack<T, V> pack;
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) pack.v[k] = T(0);
  store_pack(p, pack);
}

/// A row that has ended: the state as it was, an output of 0.
template <int V, class T>
__device__ void keep(const T* before, T* after, T* y, int64_t i) {
  store_pack(after + i, load_pack<V>(before + i));
  if (y) store_zeros<V>(y + i);
}

/// The gradient of a row that has ended: it goes past this step.
template <int V, class T>
__device__ void pass(const T* dh, compute_t<T>* carry, int64_t i) {
  using C = compute_t<T>;
  Values<V, C> sum(carry + i);
  const Values<V, T> more(dh, i);
  WEFT_UNROLL
  for (int k = 0; k < V; ++k) sum.v[k] += more.v[k];
  sum.store(carry + i);
}

template <class T>
struct LstmCell {
  using C = compute_t<T>;
  const T* parts;
  const C* c_before;
  const T* h_before;
  T* gates;
  C* c;
  T *h, *y;

  template <int V>
  __device__ void operator()(const Step& step, int64_t n, int64_t j) const {
    const int64_t at = n * step.width + j;
    if (step.ended(n)) {
      store_pack(c + at, load_pack<V>(c_before + at));
      return keep<V>(h_before, h, y, at);
    }
    const auto gate = [&](int g) { return 4 * n * step.width + g * step.width + j; };
    Values<V, T> i(gates + gate(0)), f(gates + gate(1)), m(gates + gate(2)), o(gates + gate(3));
    const Values<V, T> pi(parts + gate(0)), pf(parts + gate(1)), pm(parts + gate(2)), po(parts + gate(3));
    Values<V, C> cell(c_before + at);
    Values<V, T> state;
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) {
      i.v[k] = math::sigmoid(i.v[k] + pi.v[k]);
      f.v[k] = math::sigmoid(f.v[k] + pf.v[k]);
      m.v[k] = math::tanh(m.v[k] + pm.v[k]);
      o.v[k] = math::sigmoid(o.v[k] + po.v[k]);
      cell.v[k] = f.v[k] * cell.v[k] + i.v[k] * m.v[k];
      state.v[k] = o.v[k] * math::tanh(cell.v[k]);
    }
    i.store(gates + gate(0));
    f.store(gates + gate(1));
    m.store(gates + gate(2));
    o.store(gates + gate(3));
    cell.store(c + at);
    state.store(h + at);
    if (y) state.store(y + at);
  }
};

template <class T>
struct LstmCellGrad {
  using C = compute_t<T>;
  const T *dy, *dh;
  int64_t dy_row;
  const T* gates;
  const C *c_before, *c;
  T* dgates;
  C *carry, *dc;

  template <int V>
  __device__ void operator()(const Step& step, int64_t n, int64_t j) const {
    const int64_t at = n * step.width + j;
    const auto gate = [&](int g) { return 4 * n * step.width + g * step.width + j; };
    if (step.ended(n)) {
      for (int g = 0; g < 4; ++g) store_zeros<V>(dgates + gate(g));
      return pass<V>(dh, carry, at);
    }
    Values<V, T> i(gates + gate(0)), f(gates + gate(1)), m(gates + gate(2)), o(gates + gate(3));
    const Values<V, T> from_output(dy, n * dy_row + j), from_next(dh, at);
    const Values<V, C> past(carry + at), cell(c + at), old(c_before + at);
    Values<V, C> dcell(dc + at);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) {
      const C d = past.v[k] + from_next.v[k] + from_output.v[k], s = math::tanh(cell.v[k]);
      const C vi = i.v[k], vf = f.v[k], vm = m.v[k], vo = o.v[k];
      const C dck = dcell.v[k] + d * vo * (C(1) - s * s);
      i.v[k] = dck * vm * vi * (C(1) - vi);
      f.v[k] = dck * old.v[k] * vf * (C(1) - vf);
      m.v[k] = dck * vi * (C(1) - vm * vm);
      o.v[k] = d * s * vo * (C(1) - vo);
      dcell.v[k] = dck * vf;
    }
    i.store(dgates + gate(0));
    f.store(dgates + gate(1));
    m.store(dgates + gate(2));
    o.store(dgates + gate(3));
    dcell.store(dc + at);
    store_zeros<V>(carry + at);
  }
};

template <class T>
struct GruCell {
  using C = compute_t<T>;
  const T *parts, *h_before;
  T *gates, *hidden, *h, *y;

  template <int V>
  __device__ void operator()(const Step& step, int64_t n, int64_t j) const {
    const int64_t at = n * step.width + j;
    if (step.ended(n)) return keep<V>(h_before, h, y, at);
    const auto gate = [&](int g) { return 3 * n * step.width + g * step.width + j; };
    Values<V, T> r(gates + gate(0)), z(gates + gate(1)), m(gates + gate(2));
    const Values<V, T> pr(parts + gate(0)), pz(parts + gate(1)), share(parts + gate(2));
    Values<V, T> state(h_before + at);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) {
      r.v[k] = math::sigmoid(r.v[k] + pr.v[k]);
      z.v[k] = math::sigmoid(z.v[k] + pz.v[k]);
      m.v[k] = math::tanh(m.v[k] + r.v[k] * share.v[k]);
      state.v[k] = (C(1) - z.v[k]) * m.v[k] + z.v[k] * state.v[k];
    }
    r.store(gates + gate(0));
    z.store(gates + gate(1));
    m.store(gates + gate(2));
    share.store(hidden + at);
    state.store(h + at);
    if (y) state.store(y + at);
  }
};

template <class T>
struct GruCellGrad {
  using C = compute_t<T>;
  const T *dy, *dh;
  int64_t dy_row;
  const T *gates, *hidden, *h_before;
  T *dgates, *dgates_h;
  C* carry;

  template <int V>
  __device__ void operator()(const Step& step, int64_t n, int64_t j) const {
    const int64_t at = n * step.width + j;
    const auto gate = [&](int g) { return 3 * n * step.width + g * step.width + j; };
    if (step.ended(n)) {
      for (int g = 0; g < 3; ++g) {
        store_zeros<V>(dgates + gate(g));
        store_zeros<V>(dgates_h + gate(g));
      }
      return pass<V>(dh, carry, at);
    }
    Values<V, T> r(gates + gate(0)), z(gates + gate(1)), m(gates + gate(2)), share(hidden + at);
    const Values<V, T> from_output(dy, n * dy_row + j), from_next(dh, at), old(h_before + at);
    Values<V, C> past(carry + at);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) {
      const C d = past.v[k] + from_next.v[k] + from_output.v[k];
      const C vr = r.v[k], vz = z.v[k], vm = m.v[k];
      const C dm = d * (C(1) - vz) * (C(1) - vm * vm);
      r.v[k] = dm * share.v[k] * vr * (C(1) - vr);
      z.v[k] = d * (old.v[k] - vm) * vz * (C(1) - vz);
      m.v[k] = dm;
      share.v[k] = dm * vr;
      past.v[k] = d * vz;
    }
    r.store(dgates + gate(0));
    r.store(dgates_h + gate(0));
    z.store(dgates + gate(1));
    z.store(dgates_h + gate(1));
    m.store(dgates + gate(2));
    share.store(dgates_h + gate(2));
    past.store(carry + at);
  }
};

template <int V, class Cell>
__global__ void __launch_bounds__(kBlock) cell_kernel(Step step, Cell cell) {
  const int64_t packs = step.width / V;
  for (int64_t i = grid_index(); i < step.rows * packs; i += grid_size())
    cell.template operator()<V>(step, i / packs, i % packs * V);
}

/// The cell at every element of the state; `pointers` are those that it reads and writes packs at.
template <class Cell, class... P>
void run(const Step& step, const Cell& cell, bool even, const P*... pointers) {
  if (step.elements() == 0) return;
  constexpr int V = kCellPack;
  if (step.elements() >= kManyElements && step.width % V == 0 && even && packs_fit<V>(pointers...))
    launch(blocks_for(step.elements() / V), kBlock, 0, cell_kernel<V, Cell>, step, cell);
  else
    launch(blocks_for(step.elements()), kBlock, 0, cell_kernel<1, Cell>, step, cell);
}

template <class T>
T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}

int64_t row_step(const Tensor& x) { return x.defined() ? x.strides()[0] : 0; }

}  // namespace

void lstm_cell(const Tensor& gates_h, const Tensor& c_before, const Tensor& h_before, const Tensor& lengths, int64_t t,
               Tensor& gates, Tensor& c, Tensor& h, Tensor& y) {
  dispatch_floating("lstm", gates.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const LstmCell<T> cell{gates_h.data<T>(), c_before.data<C>(), h_before.data<T>(), gates.data<T>(),
                           c.data<C>(),       h.data<T>(),        data_or_null<T>(y)};
    run(Step(h, lengths, t), cell, true, cell.parts, cell.c_before, cell.h_before, cell.gates, cell.c, cell.h, cell.y);
  });
}

void lstm_cell_grad(const Tensor& dy, const Tensor& dh, const Tensor& gates, const Tensor& c_before, const Tensor& c,
                    const Tensor& lengths, int64_t t, Tensor& dgates, Tensor& carry, Tensor& dc) {
  dispatch_floating("lstm", gates.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const LstmCellGrad<T> cell{data_or_null<T>(dy), data_or_null<T>(dh), row_step(dy),
                               gates.data<T>(),     c_before.data<C>(),  c.data<C>(),
                               dgates.data<T>(),    carry.data<C>(),     dc.data<C>()};
    run(Step(c, lengths, t), cell, cell.dy_row % kCellPack == 0, cell.dy, cell.dh, cell.gates, cell.c_before, cell.c,
        cell.dgates, cell.carry, cell.dc);
  });
}

void gru_cell(const Tensor& gates_h, const Tensor& h_before, const Tensor& lengths, int64_t t, Tensor& gates,
              Tensor& hidden, Tensor& h, Tensor& y) {
  dispatch_floating("gru", gates.dtype(), [&]<class T>() {
    const GruCell<T> cell{gates_h.data<T>(), h_before.data<T>(), gates.data<T>(),
                          hidden.data<T>(),  h.data<T>(),        data_or_null<T>(y)};
    run(Step(h, lengths, t), cell, true, cell.parts, cell.h_before, cell.gates, cell.hidden, cell.h, cell.y);
  });
}

void gru_cell_grad(const Tensor& dy, const Tensor& dh, const Tensor& gates, const Tensor& hidden,
                   const Tensor& h_before, const Tensor& lengths, int64_t t, Tensor& dgates, Tensor& dgates_h,
                   Tensor& carry) {
  dispatch_floating("gru", gates.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const GruCellGrad<T> cell{data_or_null<T>(dy), data_or_null<T>(dh), row_step(dy),
                              gates.data<T>(),     hidden.data<T>(),    h_before.data<T>(),
                              dgates.data<T>(),    dgates_h.data<T>(),  carry.data<C>()};
    run(Step(carry, lengths, t), cell, cell.dy_row % kCellPack == 0, cell.dy, cell.dh, cell.gates, cell.hidden,
        cell.h_before, cell.dgates, cell.dgates_h, cell.carry);
  });
}

}  // namespace weft::WEFT_GPU
