// The maximum over time of a convolution that is never stored: windows of a channels-last sequence are overlapping rows
// of a matrix, and the maximum is taken while a tile of the product with the weights is in registers. The gradient
// touches the winning windows only.
#include <type_traits>

#include "tensor/cpu/onednn.h"
#include "tensor/cpu/vectors.h"
#include "tensor/kernels.h"
#include "tensor/threads.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

// A tile of places by vectors of channels, which with its factors fills the registers: 32 of AVX-512, 16 elsewhere.
constexpr int kPlaces = kVectorBytes == 64 ? 14 : 6;
constexpr int kWidth = 2;

/// Outputs of a convolution that are kept in the caches, a few megabytes of them.
constexpr int64_t kCachedFloats = int64_t{1} << 20;

/// Whole numbers as wide as T, which stand in vectors beside it.
template <class T>
using Whole = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// Channels of one panel of weights, [depth, kChannels].
template <class T>
constexpr int64_t kChannels = kWidth* kLanesOf<T>;

struct Sizes {
  int64_t samples, length, channels, outputs, kernel;

  Sizes(const Shape& x, const Shape& weight)
      : samples(x[0]), length(x[1]), channels(x[2]), outputs(weight[0]), kernel(weight[2]) {}
  int64_t depth() const { return kernel * channels; }
};

/// A panel's largest values so far, and their places; the start is what ReLU makes of values that are not above 0.
template <class T>
struct Best {
  T values[kChannels<T>] = {};
  Whole<T> places[kChannels<T>];

  Best() { std::fill_n(places, kChannels<T>, -1); }
};

/// The outputs of `Places` places from `first` on, x being the first one's window.
template <int Places, class T>
__attribute__((always_inline)) inline void take(const T* x, int64_t step, const T* panel, int64_t depth, const T* bias,
                                                int64_t first, Best<T>& best) {
  using Vector = typename VectorOf<T>::type;
  Vector sum[Places][kWidth] = {};
  for (int64_t k = 0; k < depth; ++k, panel += kChannels<T>) {
    Vector row[kWidth];
    for (int w = 0; w < kWidth; ++w) row[w] = load_vector(panel + w * kLanesOf<T>);
    for (int p = 0; p < Places; ++p) {
      const T factor = x[p * step + k];
      for (int w = 0; w < kWidth; ++w) sum[p][w] += factor * row[w];
    }
  }
  for (int w = 0; w < kWidth; ++w) {
    const Vector shift = load_vector(bias + w * kLanesOf<T>);
    Vector most = load_vector(best.values + w * kLanesOf<T>);
    auto places = load_vector(best.places + w * kLanesOf<T>);
    for (int p = 0; p < Places; ++p) {
      const Vector value = sum[p][w] + shift;
      const auto wins = ~(value <= most) & (most == most);  // the first of equals, and NaN over all
      most = wins ? value : most;
      places = wins ? static_cast<Whole<T>>(first + p) + typename VectorOf<Whole<T>>::type{} : places;
    }
    store_vector(best.values + w * kLanesOf<T>, most);
    store_vector(best.places + w * kLanesOf<T>, places);
  }
}

/// All places. The last tile goes back over places that were seen, which changes nothing.
template <class T>
void take_all(const T* x, int64_t step, int64_t places, const T* panel, int64_t depth, const T* bias, Best<T>& best) {
  int64_t p = 0;
  for (; p + kPlaces <= places; p += kPlaces) take<kPlaces>(x + p * step, step, panel, depth, bias, p, best);
  if (p == places) return;
  if (places >= kPlaces) {
    p = places - kPlaces;
    return take<kPlaces>(x + p * step, step, panel, depth, bias, p, best);
  }
  for (; p < places; ++p) take<1>(x + p * step, step, panel, depth, bias, p, best);
}

/// Weights as panels [depth, kChannels], and the bias, with zeros for channels that are not there.
template <class T>
struct Panels {
  int64_t count;
  Tensor weights, bias;

  Panels(const Sizes& s, const Tensor& weight, const Tensor& shift)
      : count((s.outputs + kChannels<T> - 1) / kChannels<T>),
        weights(zeros({count, s.depth(), kChannels<T>}, dtype_of<T>::value)),
        bias(zeros({count * kChannels<T>}, dtype_of<T>::value)) {
    const T* const from = weight.data<T>();
    T* const to = weights.data<T>();
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin * kChannels<T>; o < std::min(end * kChannels<T>, s.outputs); ++o) {
        T* const column = to + o / kChannels<T> * s.depth() * kChannels<T> + o % kChannels<T>;
        for (int64_t c = 0; c < s.channels; ++c)
          for (int64_t j = 0; j < s.kernel; ++j)
            column[(j * s.channels + c) * kChannels<T>] = from[o * s.depth() + c * s.kernel + j];
      }
    });
    std::copy_n(shift.data<T>(), s.outputs, bias.data<T>());
  }
};

template <class T>
void forward(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t places, Tensor& out, Tensor& index) {
  const Sizes s(x.sizes(), weight.sizes());
  const Panels<T> panels(s, weight, bias);
  const T *from = x.data<T>(), *weights = panels.weights.template data<T>(), *biases = panels.bias.template data<T>();
  T* const to = out.data<T>();
  int32_t* const where = index.data<int32_t>();
  const int64_t work = places * s.depth() * kChannels<T>;
  parallel_for(s.samples * panels.count, 1 + 1000000 / work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t n = i / panels.count, first = i % panels.count * kChannels<T>;
      Best<T> best;
      take_all(from + n * s.length * s.channels, s.channels, places, weights + first * s.depth(), s.depth(),
               biases + first, best);
      for (int64_t o = first; o < std::min(first + kChannels<T>, s.outputs); ++o) {
        const T value = best.values[o - first];
        to[n * s.outputs + o] = value;
        where[n * s.outputs + o] = value > 0 ? static_cast<int32_t>(best.places[o - first]) : -1;
      }
    }
  });
}

/// The same row by row of outputs that are there: best and places hold the start.
void take_rows(const float* rows, int64_t count, int64_t outputs, const float* bias, float* best, int32_t* places) {
  for (int64_t p = 0; p < count; ++p, rows += outputs)
#pragma GCC ivdep
    for (int64_t o = 0; o < outputs; ++o) {
      const float value = rows[o] + bias[o], most = best[o];
      const bool wins = !(value <= most) & (most == most);
      best[o] = wins ? value : most;
      places[o] = wins ? static_cast<int32_t>(p) : places[o];
    }
}

/// oneDNN's convolution of as many samples as stay in the caches, where the CPU multiplies 16 bits itself; false, and
/// nothing done, elsewhere. x, weight, and out in f32.
bool forward_onednn(const Tensor& x, const Tensor& weight, const Tensor& bias, int64_t places, Tensor& out,
                    Tensor& index) {
  if (!onednn::multiplies(x.dtype())) return false;
  const Sizes s(x.sizes(), weight.sizes());
  const int64_t length = s.length - s.kernel + 1;
  const int64_t group = std::clamp<int64_t>(kCachedFloats / (length * s.outputs), 1, s.samples);
  Tensor rows = empty({group, length, s.outputs});
  fill(out, 0);
  fill(index, -1);
  for (int64_t n = 0; n < s.samples; n += group) {
    const int64_t count = std::min(group, s.samples - n);
    const auto in = onednn::describe({count, s.channels, s.length}, {s.length * s.channels, 1, s.channels}, x.dtype());
    const auto to = onednn::describe({count, s.outputs, length}, {length * s.outputs, 1, s.outputs}, DType::f32);
    onednn::Key key;
    key.add('w').add(static_cast<int64_t>(x.dtype())).add(count).add(x.sizes()).add(weight.sizes());
    const onednn::Prepared& p = onednn::prepared(key, [&] {
      const auto w = onednn::describe_any(weight.sizes(), x.dtype());
      const dnnl::primitive_attr attr = onednn::attributes(Activation::none);
      const auto kind = dnnl::prop_kind::forward_inference;
      const auto algorithm = dnnl::algorithm::convolution_direct;
      const dnnl::memory::dims one{1}, none{0};
#if DNNL_VERSION_MAJOR < 3
      const dnnl::convolution_forward::primitive_desc pd({kind, algorithm, in, w, to, one, none, none}, attr,
                                                         onednn::engine());
#else
      const dnnl::convolution_forward::primitive_desc pd(onednn::engine(), kind, algorithm, in, w, to, one, none, none,
                                                         attr);
#endif
      return onednn::Prepared{
          dnnl::convolution_forward(pd), in, pd.weights_desc(), {}, pd.dst_desc(), pd.scratchpad_desc(),
          onednn::is_plain_loops(pd)};
    });
    if (p.plain_loops) return false;
    const Tensor samples = raw::narrow(x, 0, n, count);
    onednn::run(p, {{DNNL_ARG_SRC, samples.raw_data(), in, &p.source},
                    {DNNL_ARG_WEIGHTS, weight.raw_data(), onednn::describe(weight), &p.weights},
                    {DNNL_ARG_DST, rows.raw_data(), to, &p.destination, true}});
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        take_rows(rows.data<float>() + i * length * s.outputs, places, s.outputs, bias.data<float>(),
                  out.data<float>() + (n + i) * s.outputs, index.data<int32_t>() + (n + i) * s.outputs);
    });
  }
  for (int64_t i = 0; i < out.numel(); ++i)
    if (!(out.data<float>()[i] > 0)) index.data<int32_t>()[i] = -1;  // NaN has no gradient
  return true;
}

/// to += factor · from.
template <class T>
void add_scaled(int64_t n, T factor, const T* from, T* to) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

/// dx by sample: the weights of each channel, at its winning window.
template <class T>
void backward_data(const Tensor& dy, const Tensor& weight, const Tensor& index, Tensor& dx) {
  const Sizes s(dx.sizes(), weight.sizes());
  const Tensor by_place = raw::contiguous(raw::transpose(weight, 1, 2));
  const T *g = dy.data<T>(), *w = by_place.data<T>();
  const int32_t* const where = index.data<int32_t>();
  T* const to = dx.data<T>();
  parallel_for(s.samples, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      T* const sample = to + n * s.length * s.channels;
      std::fill_n(sample, s.length * s.channels, T(0));
      for (int64_t o = 0; o < s.outputs; ++o)
        if (const int64_t place = where[n * s.outputs + o]; place >= 0)
          add_scaled(s.depth(), g[n * s.outputs + o], w + o * s.depth(), sample + place * s.channels);
    }
  });
}

/// dweight by channel: its winning windows, in the order of samples.
template <class T>
void backward_weight(const Tensor& dy, const Tensor& x, const Tensor& index, Tensor& dweight) {
  const Sizes s(x.sizes(), dweight.sizes());
  Tensor by_place = zeros({s.outputs, s.kernel, s.channels}, dtype_of<T>::value);
  const T *g = dy.data<T>(), *from = x.data<T>();
  const int32_t* const where = index.data<int32_t>();
  T* const to = by_place.data<T>();
  parallel_for(s.outputs, 8, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < s.samples; ++n)
      for (int64_t o = begin; o < end; ++o)
        if (const int64_t place = where[n * s.outputs + o]; place >= 0)
          add_scaled(s.depth(), g[n * s.outputs + o], from + (n * s.length + place) * s.channels, to + o * s.depth());
  });
  copy(raw::transpose(by_place, 1, 2), dweight);
}

template <class T>
void backward_bias(const Tensor& dy, const Tensor& index, Tensor& dbias) {
  const int64_t samples = dy.sizes()[0], outputs = dy.sizes()[1];
  const T* const g = dy.data<T>();
  const int32_t* const where = index.data<int32_t>();
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = 0;
    for (int64_t n = 0; n < samples; ++n)
      if (where[n * outputs + o] >= 0) sum += static_cast<double>(g[n * outputs + o]);
    dbias.data<T>()[o] = static_cast<T>(sum);
  }
}

/// f<T>() for f32 and f64; 16-bit types are f32 by then.
template <class F>
void in_words(DType dtype, const F& f) {
  dtype == DType::f64 ? f.template operator()<double>() : f.template operator()<float>();
}

bool is_half(const Tensor& x) { return size_of(x.dtype()) == 2; }
Tensor widened(const Tensor& x) { return x.defined() && is_half(x) ? raw::to(x, DType::f32) : x; }
Tensor wide_like(const Tensor& x) { return x.defined() && is_half(x) ? empty(x.sizes(), DType::f32) : x; }
void narrow_into(const Tensor& wide, Tensor& out) {
  if (out.defined() && is_half(out)) copy(wide, out);
}

}  // namespace

void conv_max(const Tensor& x, const Tensor& weight_any, const Tensor& bias, int64_t places, Tensor& out,
              Tensor& index) {
  WEFT_ASSERT(x.is_contiguous() && out.is_contiguous() && index.is_contiguous());
  if (out.numel() == 0) return;
  Tensor wide = wide_like(out);
  const Tensor weight = raw::contiguous(weight_any);
  const Tensor shift = bias.defined() ? widened(bias) : zeros({out.sizes()[1]}, wide.dtype());
  if (!is_half(x) || !forward_onednn(x, weight, shift, places, wide, index))
    in_words(wide.dtype(), [&]<class T>() { forward<T>(widened(x), widened(weight), shift, places, wide, index); });
  narrow_into(wide, out);
}

void conv_max_grad(const Tensor& dy_any, const Tensor& x, const Tensor& weight, const Tensor& index, Tensor& dx,
                   Tensor& dweight, Tensor& dbias) {
  WEFT_ASSERT(index.is_contiguous() && (!dx.defined() || dx.is_contiguous()));
  const Tensor dy = raw::contiguous(widened(dy_any));
  in_words(dy.dtype(), [&]<class T>() {
    Tensor wide = wide_like(dx);
    if (dx.defined()) backward_data<T>(dy, widened(weight), index, wide);
    narrow_into(wide, dx);
    if (dweight.defined()) backward_weight<T>(dy, widened(x), index, dweight);
    wide = wide_like(dbias);
    if (dbias.defined()) backward_bias<T>(dy, index, wide);
    narrow_into(wide, dbias);
  });
}

}  // namespace weft::cpu_kernels
