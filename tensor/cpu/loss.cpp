// Losses. Rows of class scores are read twice forward (maximum, sum of exponentials) and once backward; all that
// crosses rows is added in double, in row order.
#include <cmath>
#include <limits>
#include <vector>

#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"
#include "tensor/pair_loss.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

/// Labels as i64 in row-major order; throws for one outside of the classes.
Tensor checked_labels(const char* op, const Tensor& target, int64_t classes, int64_t ignore_index) {
  const Tensor labels = raw::contiguous(raw::to(target, DType::i64));
  const int64_t* label = labels.data<int64_t>();
  for (int64_t i = 0; i < labels.numel(); ++i)
    WEFT_CHECK(label[i] == ignore_index || (0 <= label[i] && label[i] < classes), op,
               "label {} at {} is outside of the classes [0, {}) and is not ignore_index, {}", label[i],
               str(position_of(i, target.sizes())), classes, ignore_index);
  return labels;
}

/// Class weights in double; ones where there are none.
std::vector<double> class_weights(const Tensor& weight, int64_t classes) {
  return weight.defined() ? weight.to_vector<double>() : std::vector<double>(static_cast<size_t>(classes), 1.0);
}

double total_of(const std::vector<double>& values) {
  double total = 0;
  for (const double v : values) total += v;
  return total;
}

/// Losses of rows into out, and the weight of the labels that count into total.
void finish(const LabelLoss& loss, const std::vector<double>& row_losses, const int64_t* label,
            const std::vector<double>& weights, Tensor& out, Tensor& total) {
  double weight = 0;
  for (size_t row = 0; row < row_losses.size(); ++row)
    if (label[row] != loss.ignore_index) weight += weights[static_cast<size_t>(label[row])];
  *total.data<double>() = weight;
  const double sum = total_of(row_losses), result = loss.reduction != Reduction::mean ? sum
                                                    : weight == 0                     ? 0
                                                                                      : sum / weight;
  dispatch_floating("loss", out.dtype(), [&]<class T>() {
    T* const y = out.data<T>();
    if (loss.reduction != Reduction::none)
      *y = static_cast<T>(static_cast<compute_t<T>>(result));
    else
      for (size_t row = 0; row < row_losses.size(); ++row)
        y[row] = static_cast<T>(static_cast<compute_t<T>>(row_losses[row]));
  });
}

/// d loss / d loss of each row.
template <class T>
std::vector<double> row_gradients(const Tensor& dy, const LabelLoss& loss, const Tensor& total, int64_t rows) {
  if (loss.reduction == Reduction::none) return dy.to_vector<double>();
  double g = dy.item();
  if (loss.reduction == Reduction::mean) {
    const double weight = *total.data<double>();
    g = weight == 0 ? 0 : g / weight;
  }
  return std::vector<double>(static_cast<size_t>(rows), g);
}

constexpr int64_t kLanes = 32;

template <class T>
compute_t<T> max_of_row(const T* x, int64_t n) {
  using C = compute_t<T>;
  C lane[kLanes];
  std::fill_n(lane, kLanes, -std::numeric_limits<C>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) {
      const C v = load(x[i + l]);
      lane[l] = v > lane[l] ? v : lane[l];
    }
  for (int64_t l = 0; i < n; ++i, ++l) lane[l] = std::max(lane[l], load(x[i]));
  return *std::max_element(lane, lane + kLanes);
}

/// Σ e^(x - shift).
template <class T>
double exp_sum_of_row(const T* x, int64_t n, compute_t<T> shift) {
  using C = compute_t<T>;
  double total = 0;
  for (int64_t first = 0; first < n; first += 32 * kLanes) {
    const int64_t end = std::min(n, first + 32 * kLanes);
    C lane[kLanes] = {};
    int64_t i = first;
    for (; i + kLanes <= end; i += kLanes)
      for (int64_t l = 0; l < kLanes; ++l) lane[l] += math::exp(static_cast<C>(load(x[i + l]) - shift));
    for (int64_t l = 0; i < end; ++i, ++l) lane[l] += math::exp(static_cast<C>(load(x[i]) - shift));
    for (const C v : lane) total += static_cast<double>(v);
  }
  return total;
}

int64_t rows_per_piece(int64_t classes) { return std::max<int64_t>(1, kGrain / 8 / std::max<int64_t>(1, classes)); }

}  // namespace

void cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, const LabelLoss& loss, Tensor& out,
                   Tensor& total, Tensor& stats) {
  const int64_t rows = x.sizes()[0], classes = x.sizes()[1];
  const Tensor labels = checked_labels("cross_entropy", target, classes, loss.ignore_index);
  const int64_t* const label = labels.data<int64_t>();
  const std::vector<double> weights = class_weights(weight, classes);
  const double all_weights = total_of(weights), share = loss.smoothing / static_cast<double>(classes);
  std::vector<double> row_losses(static_cast<size_t>(rows));
  dispatch_floating("cross_entropy", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const T* const from = x.data<T>();
    C* const maxima = stats.data<C>();
    C* const sums = maxima + rows;
    parallel_for(rows, rows_per_piece(classes), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* const v = from + row * classes;
        const auto r = static_cast<size_t>(row);
        if (label[row] == loss.ignore_index) {
          row_losses[r] = 0;
          continue;
        }
        const C most = max_of_row(v, classes);
        const double sum = exp_sum_of_row(v, classes, most), log_sum = std::log(sum);
        maxima[row] = most;
        sums[row] = static_cast<C>(sum);
        const double top = static_cast<double>(most);
        const double nll = top - static_cast<double>(load(v[label[row]])) + log_sum;
        row_losses[r] = (1 - loss.smoothing) * weights[static_cast<size_t>(label[row])] * nll;
        if (loss.smoothing == 0) continue;
        double weighted = 0;
        for (int64_t c = 0; c < classes; ++c)
          weighted += weights[static_cast<size_t>(c)] * (top - static_cast<double>(load(v[c])));
        row_losses[r] += share * (weighted + all_weights * log_sum);
      }
    });
  });
  finish(loss, row_losses, label, weights, out, total);
}

void cross_entropy_grad(const Tensor& dy, const Tensor& x, const Tensor& target, const Tensor& weight,
                        const LabelLoss& loss, const Tensor& total, const Tensor& stats, Tensor& dx) {
  const int64_t rows = x.sizes()[0], classes = x.sizes()[1];
  const Tensor labels = raw::contiguous(raw::to(target, DType::i64));
  const int64_t* const label = labels.data<int64_t>();
  const std::vector<double> weights = class_weights(weight, classes);
  const double share = loss.smoothing / static_cast<double>(classes), smooth_weight = share * total_of(weights);
  dispatch_floating("cross_entropy", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    const std::vector<double> gradient = row_gradients<T>(dy, loss, total, rows);
    const T* const from = x.data<T>();
    T* const to = dx.data<T>();
    const C* const maxima = stats.data<C>();
    const C* const sums = maxima + rows;
    parallel_for(rows, rows_per_piece(classes), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        T* const d = to + row * classes;
        const double g = gradient[static_cast<size_t>(row)];
        if (label[row] == loss.ignore_index || g == 0) {
          std::fill_n(d, classes, T(0));
          continue;
        }
        const T* const v = from + row * classes;
        const double hit = (1 - loss.smoothing) * weights[static_cast<size_t>(label[row])];
        const C most = maxima[row], scale = static_cast<C>(g * (hit + smooth_weight)) / sums[row];
        // The label's own entry is p - 1 where that is small against p: it goes through double before it is rounded.
        const double own = static_cast<double>(math::exp(static_cast<C>(load(v[label[row]]) - most)) * scale) - g * hit;
        if (loss.smoothing == 0) {
#pragma GCC ivdep
          for (int64_t c = 0; c < classes; ++c)
            d[c] = static_cast<T>(math::exp(static_cast<C>(load(v[c]) - most)) * scale);
        } else {
          for (int64_t c = 0; c < classes; ++c)
            d[c] = static_cast<T>(math::exp(static_cast<C>(load(v[c]) - most)) * scale -
                                  static_cast<C>(g * share * weights[static_cast<size_t>(c)]));
        }
        d[label[row]] = static_cast<T>(static_cast<C>(own - g * share * weights[static_cast<size_t>(label[row])]));
      }
    });
  });
}

void nll(const Tensor& x, const Tensor& target, const Tensor& weight, const LabelLoss& loss, Tensor& out,
         Tensor& total) {
  const int64_t rows = x.sizes()[0], classes = x.sizes()[1];
  const Tensor labels = checked_labels("nll_loss", target, classes, loss.ignore_index);
  const int64_t* const label = labels.data<int64_t>();
  const std::vector<double> weights = class_weights(weight, classes);
  std::vector<double> row_losses(static_cast<size_t>(rows));
  dispatch_floating("nll_loss", x.dtype(), [&]<class T>() {
    const T* const v = x.data<T>();
    for (int64_t row = 0; row < rows; ++row)
      if (label[row] != loss.ignore_index)
        row_losses[static_cast<size_t>(row)] =
            -weights[static_cast<size_t>(label[row])] * static_cast<double>(load(v[row * classes + label[row]]));
  });
  finish(loss, row_losses, label, weights, out, total);
}

void nll_grad(const Tensor& dy, const Tensor& target, const Tensor& weight, const LabelLoss& loss, const Tensor& total,
              Tensor& dx) {
  const int64_t rows = dx.sizes()[0], classes = dx.sizes()[1];
  const Tensor labels = raw::contiguous(raw::to(target, DType::i64));
  const int64_t* const label = labels.data<int64_t>();
  const std::vector<double> weights = class_weights(weight, classes);
  fill(dx, 0);
  dispatch_floating("nll_loss", dx.dtype(), [&]<class T>() {
    const std::vector<double> gradient = row_gradients<T>(dy, loss, total, rows);
    T* const d = dx.data<T>();
    for (int64_t row = 0; row < rows; ++row)
      if (label[row] != loss.ignore_index)
        d[row * classes + label[row]] = static_cast<T>(
            static_cast<compute_t<T>>(-weights[static_cast<size_t>(label[row])] * gradient[static_cast<size_t>(row)]));
  });
}

namespace {

bool is_one_value(const Tensor& x) {
  for (int64_t d = 0; d < x.dim(); ++d)
    if (x.sizes()[d] != 1 && x.strides()[d] != 0) return false;
  return x.numel() > 0;
}

}  // namespace

void pair_loss(const Tensor& x, const Tensor& target, const PairLoss& loss, Tensor& out) {
  dispatch_floating("loss", x.dtype(), [&]<class T>() {
    with_pair_loss(loss, [&](const auto& value, const auto&) { map<T, T, T>(value, out, x, target); });
  });
}

void pair_loss_grad(const Tensor& dy, const Tensor& x, const Tensor& target, const PairLoss& loss, Tensor& dx) {
  dispatch_floating("loss", x.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    with_pair_loss(loss, [&](const auto&, const auto& slope) {
      const functors::ChainSlope chain{slope};
      if (is_one_value(dy)) {
        map<T, T, T>([chain, g = load(*dy.data<T>())](C v, C t) { return chain(g, v, t); }, dx, x, target);
      } else {
        map<T, T, T, T>(chain, dx, dy, x, target);
      }
    });
  });
}

}  // namespace weft::cpu_kernels
