// Losses. The softmax of a row and its loss are one pass over the row (online softmax, Milakov and Gimelshein 2018) by
// a warp, or by a block where rows are long; the gradient is one more. What crosses rows is added in double: each block
// adds up its rows, and one block adds up the blocks.
#include <cmath>
#include <limits>

#include "tensor/cuda/block.cuh"
#include "tensor/cuda/fault.cuh"
#include "tensor/cuda/map.cuh"
#include "tensor/pair_loss.h"
#include "tensor/view.h"

namespace weft::WEFT_GPU {
namespace {

namespace math = gpu_math;

/// What the kernels of a loss know of it. `weight` is null where all classes weigh 1; `all_weights` is null then, and
/// where there is no smoothing.
struct Labels {
  const int64_t* label;
  const double* weight;
  const double* all_weights;
  int64_t rows, classes, ignored;
  double smoothing;
  Reduction reduction;

  __device__ double weight_of(int64_t c) const { return weight ? weight[c] : 1; }
  __device__ double weight_of_all() const { return all_weights ? *all_weights : static_cast<double>(classes); }
  __device__ bool counts(int64_t l) const { return l != ignored && l >= 0 && l < classes; }
};

/// The tensors behind a Labels, for as long as its kernels are being launched.
struct LabelTensors {
  Tensor label, weight, all_weights;
};

Labels labels_of(const Tensor& target, const Tensor& weight, const LabelLoss& loss, int64_t rows, int64_t classes,
                 LabelTensors& keep) {
  keep.label = raw::contiguous(raw::to(target, DType::i64));
  Labels labels{keep.label.data<int64_t>(), nullptr,        nullptr,       rows, classes,
                loss.ignore_index,          loss.smoothing, loss.reduction};
  if (!weight.defined()) return labels;
  keep.weight = raw::contiguous(raw::to(weight, DType::f64));
  labels.weight = keep.weight.data<double>();
  if (loss.smoothing == 0) return labels;
  keep.all_weights = empty({}, {DType::f64, weight.device()});
  launch(1, kBlock, 0, sum_kernel<double>, labels.weight, classes, keep.all_weights.data<double>());
  labels.all_weights = keep.all_weights.data<double>();
  return labels;
}

/// The loss of rows and the weight of those that count, of one thread, a block, or all.
struct Totals {
  double loss, weight;
};

/// Adds up the block's totals for finish_kernel.
__device__ void leave_totals(double loss, double weight, Totals* parts) {
  loss = block_sum(loss);
  weight = block_sum(weight);
  if (threadIdx.x == 0) parts[blockIdx.x] = {loss, weight};
}

/// The sum or mean, and the weight of all rows that count. One block.
template <class T>
__global__ void __launch_bounds__(kBlock)
    finish_kernel(const Totals* parts, int64_t n, Reduction reduction, T* out, double* total) {
  double loss = 0, weight = 0;
  for (int64_t i = threadIdx.x; i < n; i += kBlock) {
    loss += parts[i].loss;
    weight += parts[i].weight;
  }
  loss = block_sum(loss);
  weight = block_sum(weight);
  if (threadIdx.x > 0) return;
  *total = weight;
  if (reduction == Reduction::none) return;
  const double result = reduction == Reduction::sum ? loss : weight == 0 ? 0 : loss / weight;
  *out = static_cast<T>(static_cast<compute_t<T>>(result));
}

/// d loss / d the loss of one row.
template <class T>
__device__ double row_gradient(const T* dy, const double* total, Reduction reduction, int64_t row) {
  const auto g = static_cast<double>(static_cast<compute_t<T>>(dy[reduction == Reduction::none ? row : 0]));
  if (reduction != Reduction::mean) return g;
  return *total == 0 ? 0 : g / *total;
}

/// Classes that a thread has at once: V neighbours, or kChunk that are kThreads apart where rows are not aligned.
constexpr int kChunk = 4;
template <int V>
constexpr int chunk_size = V > 1 ? V : kChunk;

/// use(class, k) for the classes of the thread's chunk that starts at `first`.
template <int V, int kThreads, class Use>
__device__ __forceinline__ void each_class(int64_t first, int64_t classes, const Use& use) {
  WEFT_UNROLL
  for (int k = 0; k < chunk_size<V>; ++k) {
    const int64_t c = first + (V > 1 ? k : k * kThreads);
    if (V > 1 || c < classes) use(c, k);
  }
}

/// The thread's chunk of a row; -∞ behind its end.
template <int V, int kThreads, class T>
__device__ __forceinline__ void load_chunk(const T* row, int64_t first, int64_t classes, compute_t<T>* values) {
  using C = compute_t<T>;
  if constexpr (V > 1) {
    const auto pack = *reinterpret_cast<const Pack<T, V>*>(row + first);
    WEFT_UNROLL
    for (int k = 0; k < V; ++k) values[k] = static_cast<C>(pack.v[k]);
  } else {
    WEFT_UNROLL
    for (int k = 0; k < kChunk; ++k) {
      const int64_t c = first + k * kThreads;
      values[k] = c < classes ? static_cast<C>(row[c]) : -std::numeric_limits<C>::infinity();
    }
  }
}

/// What exponents are taken around: the maximum, 0 where that is -∞ so that no NaN comes of it.
template <class C>
__device__ __forceinline__ C shift_for(C most) {
  return most == -std::numeric_limits<C>::infinity() ? C(0) : most;
}

template <int V, int kThreads, class T>
__global__ void __launch_bounds__(kBlock, 3)
    cross_entropy_kernel(const T* x, Labels labels, IndexCheck check, T* out, Totals* parts, compute_t<T>* stats) {
  using C = compute_t<T>;
  constexpr int kRows = kBlock / kThreads;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t classes = labels.classes, start = thread * V, step = kThreads * chunk_size<V>;
  const double share = labels.smoothing / static_cast<double>(classes);
  double total_loss = 0, total_weight = 0;
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kThreads; row < labels.rows;
       row += static_cast<int64_t>(gridDim.x) * kRows) {
    const int64_t label = labels.label[row];
    if (label == labels.ignored || !check(label, row)) {
      if (labels.reduction == Reduction::none && thread == 0) out[row] = T(0);
      continue;
    }
    const T* const v = x + row * classes;
    C most = -std::numeric_limits<C>::infinity(), sum = 0;
    for (int64_t first = start; first < classes; first += step) {
      C values[chunk_size<V>];
      load_chunk<V, kThreads>(v, first, classes, values);
      C higher = most;
      WEFT_UNROLL
      for (int k = 0; k < chunk_size<V>; ++k) higher = values[k] > higher ? values[k] : higher;
      const C shift = shift_for(higher);
      sum *= math::exp(most - shift);
      WEFT_UNROLL
      for (int k = 0; k < chunk_size<V>; ++k) sum += math::exp(values[k] - shift);
      most = higher;
    }
    const C top = group_reduce<kThreads>(most, Max{}, Max::identity<C>());
    sum = group_reduce<kThreads>(static_cast<C>(sum * math::exp(most - shift_for(top))), Sum{}, C(0));
    double loss = 0;
    if (labels.smoothing != 0) {
      double weighted = 0;
      for (int64_t first = start; first < classes; first += step) {
        C values[chunk_size<V>];
        load_chunk<V, kThreads>(v, first, classes, values);
        each_class<V, kThreads>(first, classes, [&](int64_t c, int k) {
          weighted += labels.weight_of(c) * (static_cast<double>(top) - static_cast<double>(values[k]));
        });
      }
      loss = share * group_reduce<kThreads>(weighted, Sum{}, 0.0);
    }
    if (thread > 0) continue;
    const double log_sum = std::log(static_cast<double>(sum)), weight = labels.weight_of(label);
    const double nll = static_cast<double>(top) - static_cast<double>(static_cast<C>(v[label])) + log_sum;
    loss += (1 - labels.smoothing) * weight * nll;
    if (labels.smoothing != 0) loss += share * labels.weight_of_all() * log_sum;
    stats[row] = top;
    stats[labels.rows + row] = sum;
    if (labels.reduction == Reduction::none) out[row] = static_cast<T>(static_cast<C>(loss));
    total_loss += loss;
    total_weight += weight;
  }
  leave_totals(total_loss, total_weight, parts);
}

template <int V, int kThreads, class T>
__global__ void __launch_bounds__(kBlock, 3)
    cross_entropy_grad_kernel(const T* dy, const T* x, Labels labels, const double* total, const compute_t<T>* stats,
                              T* dx) {
  using C = compute_t<T>;
  constexpr int kRows = kBlock / kThreads;
  const int thread = static_cast<int>(threadIdx.x) % kThreads;
  const int64_t classes = labels.classes, step = kThreads * chunk_size<V>;
  const double share = labels.smoothing / static_cast<double>(classes);
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kThreads; row < labels.rows;
       row += static_cast<int64_t>(gridDim.x) * kRows) {
    const int64_t label = labels.label[row];
    const double g = labels.counts(label) ? row_gradient(dy, total, labels.reduction, row) : 0;
    const T* const v = x + row * classes;
    T* const d = dx + row * classes;
    C most = 0, scale = 0, own = 0;
    if (g != 0) {
      const double hit = (1 - labels.smoothing) * labels.weight_of(label);
      const double smooth = labels.smoothing == 0 ? 0 : share * labels.weight_of_all();
      most = stats[row];
      scale = static_cast<C>(g * (hit + smooth)) / stats[labels.rows + row];
      // The label's own entry is p - 1 where that is small against p: it goes through double before it is rounded.
      own = static_cast<C>(static_cast<double>(math::exp(static_cast<C>(v[label]) - most) * scale) - g * hit -
                           g * share * labels.weight_of(label));
    }
    for (int64_t first = thread * V; first < classes; first += step) {
      Pack<T, chunk_size<V>> gradients{};
      if (g != 0) {
        C values[chunk_size<V>];
        load_chunk<V, kThreads>(v, first, classes, values);
        each_class<V, kThreads>(first, classes, [&](int64_t c, int k) {
          C value = math::exp(values[k] - most) * scale;
          if (labels.smoothing != 0) value -= static_cast<C>(g * share * labels.weight_of(c));
          gradients.v[k] = static_cast<T>(c == label ? own : value);
        });
      }
      if constexpr (V > 1)
        *reinterpret_cast<Pack<T, V>*>(d + first) = gradients;
      else
        each_class<V, kThreads>(first, classes, [&](int64_t c, int k) { d[c] = gradients.v[k]; });
    }
  }
}

/// Rows of more classes are a block's, of fewer a warp's.
constexpr int64_t kLongRow = 1024;

/// use.operator()<V, kThreads>(blocks) with the shape of threads for such rows.
template <class T, class Use>
void with_rows(int64_t rows, int64_t classes, bool aligned, const Use& use) {
  constexpr int V = static_cast<int>(16 / sizeof(T));
  const bool packs = aligned && classes % V == 0, is_long = classes > kLongRow;
  const unsigned blocks = blocks_for(rows, is_long ? 1 : kBlock / kWarp);
  if (packs && is_long)
    use.template operator()<V, kBlock>(blocks);
  else if (packs)
    use.template operator()<V, kWarp>(blocks);
  else if (is_long)
    use.template operator()<1, kBlock>(blocks);
  else
    use.template operator()<1, kWarp>(blocks);
}

Totals* totals_in(const Tensor& parts) { return static_cast<Totals*>(parts.raw_data()); }
/// Room for the totals of `blocks` blocks.
Tensor empty_totals(unsigned blocks, Device device) { return empty({int64_t{blocks}, 2}, {DType::f64, device}); }

/// A thread a row.
template <class T>
__global__ void __launch_bounds__(kBlock)
    nll_kernel(const T* x, Labels labels, IndexCheck check, T* out, Totals* parts) {
  double total_loss = 0, total_weight = 0;
  for (int64_t row = grid_index(); row < labels.rows; row += grid_size()) {
    const int64_t label = labels.label[row];
    double loss = 0;
    if (label != labels.ignored && check(label, row)) {
      const double weight = labels.weight_of(label);
      loss = -weight * static_cast<double>(static_cast<compute_t<T>>(x[row * labels.classes + label]));
      total_weight += weight;
    }
    total_loss += loss;
    if (labels.reduction == Reduction::none) out[row] = static_cast<T>(static_cast<compute_t<T>>(loss));
  }
  leave_totals(total_loss, total_weight, parts);
}

template <class T>
__global__ void __launch_bounds__(kBlock) nll_grad_kernel(const T* dy, Labels labels, const double* total, T* dx) {
  for (int64_t row = grid_index(); row < labels.rows; row += grid_size()) {
    const int64_t label = labels.label[row];
    if (labels.counts(label))
      dx[row * labels.classes + label] = static_cast<T>(
          static_cast<compute_t<T>>(-labels.weight_of(label) * row_gradient(dy, total, labels.reduction, row)));
  }
}

}  // namespace

void cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, const LabelLoss& loss, Tensor& out,
                   Tensor& total, Tensor& stats) {
  const int64_t rows = x.sizes()[0], classes = x.sizes()[1];
  LabelTensors keep;
  const Labels labels = labels_of(target, weight, loss, rows, classes, keep);
  const IndexCheck check = index_check("cross_entropy", "label", "the classes", classes);
  dispatch_floating("cross_entropy", x.dtype(), [&]<class T>() {
    const T* const from = x.data<T>();
    T* const to = out.data<T>();
    with_rows<T>(rows, classes, is_aligned(from, 16), [&]<int V, int kThreads>(unsigned blocks) {
      const Tensor parts = empty_totals(blocks, x.device());
      launch(blocks, kBlock, 0, cross_entropy_kernel<V, kThreads, T>, from, labels, check, to, totals_in(parts),
             stats.data<compute_t<T>>());
      launch(1, kBlock, 0, finish_kernel<T>, totals_in(parts), blocks, loss.reduction, to, total.data<double>());
    });
  });
}

void cross_entropy_grad(const Tensor& dy, const Tensor& x, const Tensor& target, const Tensor& weight,
                        const LabelLoss& loss, const Tensor& total, const Tensor& stats, Tensor& dx) {
  const int64_t rows = x.sizes()[0], classes = x.sizes()[1];
  if (rows == 0) return;
  LabelTensors keep;
  const Labels labels = labels_of(target, weight, loss, rows, classes, keep);
  const Tensor upstream = raw::contiguous(dy);
  dispatch_floating("cross_entropy", x.dtype(), [&]<class T>() {
    const T* const from = x.data<T>();
    T* const to = dx.data<T>();
    with_rows<T>(rows, classes, is_aligned(from, 16) && is_aligned(to, 16), [&]<int V, int kThreads>(unsigned blocks) {
      launch(blocks, kBlock, 0, cross_entropy_grad_kernel<V, kThreads, T>, upstream.data<T>(), from, labels,
             total.data<double>(), stats.data<compute_t<T>>(), to);
    });
  });
}

void nll(const Tensor& x, const Tensor& target, const Tensor& weight, const LabelLoss& loss, Tensor& out,
         Tensor& total) {
  const int64_t rows = x.sizes()[0], classes = x.sizes()[1];
  LabelTensors keep;
  const Labels labels = labels_of(target, weight, loss, rows, classes, keep);
  const IndexCheck check = index_check("nll_loss", "label", "the classes", classes);
  const unsigned blocks = blocks_for(rows);
  const Tensor parts = empty_totals(blocks, x.device());
  dispatch_floating("nll_loss", x.dtype(), [&]<class T>() {
    launch(blocks, kBlock, 0, nll_kernel<T>, x.data<T>(), labels, check, out.data<T>(), totals_in(parts));
    launch(1, kBlock, 0, finish_kernel<T>, totals_in(parts), blocks, loss.reduction, out.data<T>(),
           total.data<double>());
  });
}

void nll_grad(const Tensor& dy, const Tensor& target, const Tensor& weight, const LabelLoss& loss, const Tensor& total,
              Tensor& dx) {
  const int64_t rows = dx.sizes()[0], classes = dx.sizes()[1];
  LabelTensors keep;
  const Labels labels = labels_of(target, weight, loss, rows, classes, keep);
  const Tensor upstream = raw::contiguous(dy);
  fill(dx, 0);
  dispatch_floating("nll_loss", dx.dtype(), [&]<class T>() {
    launch(blocks_for(rows), kBlock, 0, nll_grad_kernel<T>, upstream.data<T>(), labels, total.data<double>(),
           dx.data<T>());
  });
}

void pair_loss(const Tensor& x, const Tensor& target, const PairLoss& loss, Tensor& out) {
  dispatch_floating("loss", x.dtype(), [&]<class T>() {
    with_pair_loss(loss, [&](const auto& value, const auto&) { map<T, T, T>(value, out, x, target); });
  });
}

void pair_loss_grad(const Tensor& dy, const Tensor& x, const Tensor& target, const PairLoss& loss, Tensor& dx) {
  dispatch_floating("loss", x.dtype(), [&]<class T>() {
    with_pair_loss(
        loss, [&](const auto&, const auto& slope) { map<T, T, T, T>(functors::ChainSlope{slope}, dx, dy, x, target); });
  });
}

}  // namespace weft::WEFT_GPU
