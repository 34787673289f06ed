// Optimizer steps, norm and scaling over lists of tensors: one pass over memory, and one team of threads for the whole
// list. Elements are independent of each other, and sums have fixed pieces, so nothing depends on the number of
// threads.
#include <cmath>
#include <vector>

#include "tensor/cpu/loop.h"
#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft::cpu_kernels {
namespace {

/// body(k, begin, end): elements [begin, end) of tensor k; the list counts as one range that the threads share.
template <class Body>
void over_list(std::span<const Tensor> list, const Body& body) {
  std::vector<int64_t> starts(list.size() + 1, 0);
  for (size_t k = 0; k < list.size(); ++k) starts[k + 1] = starts[k] + list[k].numel();
  parallel_for(starts.back(), kGrain, [&](int64_t begin, int64_t end) {
    size_t k = static_cast<size_t>(std::ranges::upper_bound(starts, begin) - starts.begin()) - 1;
    for (; begin < end; ++k) {
      const int64_t stop = std::min(end, starts[k + 1]);
      if (begin < stop) body(k, begin - starts[k], stop - starts[k]);
      begin = std::max(begin, stop);
    }
  });
}

template <class T>
std::vector<T*> pointers(std::span<const Tensor> list) {
  std::vector<T*> out;
  for (const Tensor& x : list) out.push_back(x.data<T>());
  return out;
}

template <class T, class F, class... S>
void run(F f, int64_t n, T* __restrict p, const T* __restrict g, S* __restrict... state) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(f(load(p[i]), load(g[i]), state[i]...));
}

/// p = f(p, g, state&…) for every element of every parameter.
template <class T, class F, class... Lists>
void update(std::span<const Tensor> params, std::span<const Tensor> grads, const F& f, const Lists&... states) {
  const auto p = pointers<T>(params), g = pointers<T>(grads);
  const std::array<std::vector<compute_t<T>*>, sizeof...(Lists)> s{pointers<compute_t<T>>(states)...};
  WEFT_ASSERT(g.size() == p.size() && ((states.size() == p.size()) && ...));
  over_list(
      params, [&]<size_t... I>(std::index_sequence<I...>) {
        return [&](size_t k, int64_t begin, int64_t end) {
          run(f, end - begin, p[k] + begin, static_cast<const T*>(g[k] + begin), s[I][k] + begin...);
        };
      }(std::index_sequence_for<Lists...>{}));
}

/// f.operator()<T>() for the dtype of a list that is not empty.
template <class F>
void for_dtype_of(const char* op, std::span<const Tensor> params, const F& f) {
  if (!params.empty()) dispatch_floating(op, params.front().dtype(), f);
}

/// Sum of squares in double: 32 partial sums, so that it becomes vector code.
template <class T>
double sum_of_squares(const T* x, int64_t n) {
  constexpr int64_t kLanes = 32;
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) {
      const double v = load(x[i + j]);
      lane[j] += v * v;
    }
  for (int64_t j = 0; i < n; ++i, ++j) {
    const double v = load(x[i]);
    lane[j] += v * v;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lane[j] += lane[j + half];
  return lane[0];
}

}  // namespace

void sgd_step(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> momenta,
              const SgdArgs& args) {
  for_dtype_of("sgd_step", params, [&]<class T>() {
    using C = compute_t<T>;
    const C lr = static_cast<C>(args.lr), momentum = static_cast<C>(args.momentum),
            share = static_cast<C>(1 - args.dampening), decay = static_cast<C>(args.weight_decay);
    if (momenta.empty()) {
      update<T>(params, grads, [=](C p, C g) { return p - lr * (g + decay * p); });
    } else if (args.nesterov) {
      update<T>(
          params, grads,
          [=](C p, C g, C& m) {
            g += decay * p;
            m = momentum * m + share * g;
            return p - lr * (g + momentum * m);
          },
          momenta);
    } else {
      update<T>(
          params, grads,
          [=](C p, C g, C& m) {
            m = momentum * m + share * (g + decay * p);
            return p - lr * m;
          },
          momenta);
    }
  });
}

void adam_step(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> means,
               std::span<const Tensor> squares, std::span<const Tensor> max_squares, const AdamArgs& args) {
  for_dtype_of("adam_step", params, [&]<class T>() {
    using C = compute_t<T>;
    const C size = static_cast<C>(args.lr / args.correction1), scale = static_cast<C>(1 / std::sqrt(args.correction2)),
            beta1 = static_cast<C>(args.beta1), rest1 = static_cast<C>(1 - args.beta1),
            beta2 = static_cast<C>(args.beta2), rest2 = static_cast<C>(1 - args.beta2), eps = static_cast<C>(args.eps),
            l2 = static_cast<C>(args.l2), decay = static_cast<C>(args.decay);
    if (max_squares.empty()) {
      update<T>(
          params, grads,
          [=](C p, C g, C& m, C& v) {
            g += l2 * p;
            m = beta1 * m + rest1 * g;
            v = beta2 * v + rest2 * g * g;
            return p * decay - size * m / (std::sqrt(v) * scale + eps);
          },
          means, squares);
    } else {
      update<T>(
          params, grads,
          [=](C p, C g, C& m, C& v, C& top) {
            g += l2 * p;
            m = beta1 * m + rest1 * g;
            v = beta2 * v + rest2 * g * g;
            top = v < top ? top : v;  // a NaN stays
            return p * decay - size * m / (std::sqrt(top) * scale + eps);
          },
          means, squares, max_squares);
    }
  });
}

void rmsprop_step(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> squares,
                  std::span<const Tensor> means, std::span<const Tensor> momenta, const RmspropArgs& args) {
  for_dtype_of("rmsprop_step", params, [&]<class T>() {
    using C = compute_t<T>;
    const C lr = static_cast<C>(args.lr), alpha = static_cast<C>(args.alpha), rest = static_cast<C>(1 - args.alpha),
            eps = static_cast<C>(args.eps), decay = static_cast<C>(args.weight_decay),
            momentum = static_cast<C>(args.momentum);
    const auto plain = [=](C g, C& v) {
      v = alpha * v + rest * g * g;
      return g / (std::sqrt(v) + eps);
    };
    const auto centered = [=](C g, C& v, C& mean) {
      v = alpha * v + rest * g * g;
      mean = alpha * mean + rest * g;
      const C variance = v - mean * mean;
      return g / (std::sqrt(variance < 0 ? C(0) : variance) + eps);  // rounding may pass 0
    };
    const auto moved = [=](C p, C change, C& m) {
      m = momentum * m + change;
      return p - lr * m;
    };
    if (means.empty() && momenta.empty()) {
      update<T>(
          params, grads, [=](C p, C g, C& v) { return p - lr * plain(g + decay * p, v); }, squares);
    } else if (momenta.empty()) {
      update<T>(
          params, grads, [=](C p, C g, C& v, C& mean) { return p - lr * centered(g + decay * p, v, mean); }, squares,
          means);
    } else if (means.empty()) {
      update<T>(
          params, grads, [=](C p, C g, C& v, C& m) { return moved(p, plain(g + decay * p, v), m); }, squares, momenta);
    } else {
      update<T>(
          params, grads, [=](C p, C g, C& v, C& mean, C& m) { return moved(p, centered(g + decay * p, v, mean), m); },
          squares, means, momenta);
    }
  });
}

void adagrad_step(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> sums,
                  const AdagradArgs& args) {
  for_dtype_of("adagrad_step", params, [&]<class T>() {
    using C = compute_t<T>;
    const C lr = static_cast<C>(args.lr), eps = static_cast<C>(args.eps), decay = static_cast<C>(args.weight_decay);
    update<T>(
        params, grads,
        [=](C p, C g, C& sum) {
          g += decay * p;
          sum += g * g;
          return p - lr * g / (std::sqrt(sum) + eps);
        },
        sums);
  });
}

void adadelta_step(std::span<const Tensor> params, std::span<const Tensor> grads, std::span<const Tensor> squares,
                   std::span<const Tensor> deltas, const AdadeltaArgs& args) {
  for_dtype_of("adadelta_step", params, [&]<class T>() {
    using C = compute_t<T>;
    const C lr = static_cast<C>(args.lr), rho = static_cast<C>(args.rho), rest = static_cast<C>(1 - args.rho),
            eps = static_cast<C>(args.eps), decay = static_cast<C>(args.weight_decay);
    update<T>(
        params, grads,
        [=](C p, C g, C& v, C& d) {
          g += decay * p;
          v = rho * v + rest * g * g;
          const C delta = std::sqrt(d + eps) / std::sqrt(v + eps) * g;
          d = rho * d + rest * delta * delta;
          return p - lr * delta;
        },
        squares, deltas);
  });
}

void squared_norm(std::span<const Tensor> list, Tensor& out) {
  struct Piece {
    size_t tensor;
    int64_t begin;
  };
  std::vector<Piece> pieces;
  for (size_t k = 0; k < list.size(); ++k) {
    WEFT_CHECK(is_floating(list[k].dtype()), "squared_norm", "wants floating tensors, got {}", name(list[k].dtype()));
    for (int64_t begin = 0; begin < list[k].numel(); begin += kGrain) pieces.push_back({k, begin});
  }
  std::vector<double> sums(pieces.size());
  parallel_for(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const Tensor& x = list[pieces[i].tensor];
      dispatch_floating("squared_norm", x.dtype(), [&]<class T>() {
        sums[i] = sum_of_squares(x.data<T>() + pieces[i].begin, std::min(kGrain, x.numel() - pieces[i].begin));
      });
    }
  });
  double total = 0;
  for (double s : sums) total += s;
  *out.data<double>() = total;
}

void scale(std::span<const Tensor> list, double factor) {
  for (const Tensor& x : list)
    WEFT_CHECK(is_floating(x.dtype()), "scale", "wants floating tensors, got {}", name(x.dtype()));
  over_list(list, [&](size_t k, int64_t begin, int64_t end) {
    dispatch_floating("scale", list[k].dtype(), [&]<class T>() {
      const auto f = static_cast<compute_t<T>>(factor);
      T* const x = list[k].data<T>() + begin;
#pragma GCC ivdep
      for (int64_t i = 0; i < end - begin; ++i) x[i] = static_cast<T>(load(x[i]) * f);
    });
  });
}

}  // namespace weft::cpu_kernels
