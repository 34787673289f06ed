// Cases of losses.
#include "autograd/ops/loss.h"

#include <cmath>

#include "tests/ops/op_case.h"

namespace weft::testing {
namespace {

using Tensors = std::vector<Tensor>;
using Refs = std::vector<Ref>;

/// The plain definitions, one row at a time. `weight` may be empty; label `ignored` counts nothing. `logits` says
/// whether x still wants a softmax.
Ref label_loss(const Ref& x, const Ref& target, const std::vector<double>& weight, double ignored, double smoothing,
               Reduction reduction, bool logits) {
  const int64_t n = x.sizes[0], classes = x.sizes[1], places = x.numel() / (n * classes);
  Ref losses(target.sizes);
  double total = 0, weights = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = 0; p < places; ++p) {
      const double label = target[i * places + p];
      if (label == ignored) continue;
      const auto score = [&](int64_t c) { return x[(i * classes + c) * places + p]; };
      const auto w = [&](int64_t c) { return weight.empty() ? 1 : weight[static_cast<size_t>(c)]; };
      double sum = 0, loss = 0;
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(score(c));
      const double log_sum = logits ? std::log(sum) : 0;
      for (int64_t c = 0; c < classes; ++c) {
        const double wanted =
            (static_cast<double>(c) == label ? 1 - smoothing : 0) + smoothing / static_cast<double>(classes);
        loss += wanted * w(c) * (log_sum - score(c));
      }
      losses[i * places + p] = loss;
      total += loss;
      weights += w(static_cast<int64_t>(label));
    }
  return reduction == Reduction::none ? losses : Ref({}, reduction == Reduction::sum ? total : total / weights);
}

struct LabelCase {
  Shape sizes;
  bool weighted = false;
  int64_t ignored = -100;
  double smoothing = 0;
  Reduction reduction = Reduction::mean;
  std::vector<In> bench = {};
};

std::vector<In> label_inputs(const LabelCase& c) {
  Shape labels = c.sizes;
  labels.erase(1);
  return {{c.sizes}, In::indices(labels, c.sizes[1])};
}

std::vector<double> case_weights(const LabelCase& c) {
  std::vector<double> w;
  for (int64_t i = 0; c.weighted && i < c.sizes[1]; ++i) w.push_back(0.5 + 0.25 * static_cast<double>(i));
  return w;
}

/// Of x's dtype, where x is.
Tensor weight_tensor(const LabelCase& c, const Tensor& x) {
  return c.weighted ? from(case_weights(c), {c.sizes[1]}).to(x.dtype()).to(x.device()) : Tensor();
}

OpCase cross_entropy_case(const char* name, const LabelCase& c) {
  return {.name = name,
          .inputs = label_inputs(c),
          .run =
              [c](const Tensors& x) {
                return cross_entropy(x[0], x[1],
                                     {.weight = weight_tensor(c, x[0]),
                                      .ignore_index = c.ignored,
                                      .label_smoothing = c.smoothing,
                                      .reduction = c.reduction});
              },
          .reference =
              [c](const Refs& x) {
                return label_loss(x[0], x[1], case_weights(c), static_cast<double>(c.ignored), c.smoothing, c.reduction,
                                  true);
              },
          .differences = c.sizes.numel() < 1000,  // more are too many
          .dtypes = {f32, f64, bf16, f16},
          .bench = c.bench};
}

OpCase nll_case(const char* name, const LabelCase& c) {
  return {.name = name,
          .inputs = label_inputs(c),
          .run =
              [c](const Tensors& x) {
                return nll_loss(
                    x[0], x[1],
                    {.weight = weight_tensor(c, x[0]), .ignore_index = c.ignored, .reduction = c.reduction});
              },
          .reference =
              [c](const Refs& x) {
                return label_loss(x[0], x[1], case_weights(c), static_cast<double>(c.ignored), 0, c.reduction, false);
              }};
}

/// A loss of pairs that are apart by `f`, reduced to its mean.
OpCase pair_case(const char* name, Tensor (*op)(const Tensor&, const Tensor&), double (*f)(double, double), In target) {
  return {.name = name,
          .inputs = {{{4, 7}}, target},
          .run = [op](const Tensors& x) { return op(x[0], x[1]); },
          .reference =
              [f](const Refs& x) {
                double total = 0;
                for (int64_t i = 0; i < x[0].numel(); ++i) total += f(x[0][i], x[1][i]);
                return Ref({}, total / static_cast<double>(x[0].numel()));
              },
          .dtypes = {f32, f64, bf16, f16},
          .bench = {{{1 << 20}}, {{1 << 20}, In::floating, target.low, target.high}}};
}

double logistic(double x, double t) {
  return -t * std::log(1 / (1 + std::exp(-x))) - (1 - t) * std::log(1 / (1 + std::exp(x)));
}

}  // namespace

OpCases loss_cases() {
  const In far{.sizes = {4, 7}, .low = 3, .high = 5}, unit{.sizes = {4, 7}, .low = 0, .high = 1};
  return {
      cross_entropy_case("cross_entropy", {.sizes = {6, 10}, .bench = {{{64, 10}}, In::indices({64}, 10)}}),
      cross_entropy_case("cross_entropy/many_classes",
                         {.sizes = {3, 1100}, .bench = {{{2048, 8192}}, In::indices({2048}, 8192)}}),
      cross_entropy_case("cross_entropy/many_odd_classes",
                         {.sizes = {3, 1101}, .weighted = true, .ignored = 5, .smoothing = 0.1}),
      cross_entropy_case("cross_entropy/places", {.sizes = {2, 5, 3, 4}}),
      cross_entropy_case("cross_entropy/weights", {.sizes = {6, 5}, .weighted = true, .ignored = 2}),
      cross_entropy_case("cross_entropy/smoothing",
                         {.sizes = {6, 5}, .weighted = true, .ignored = 1, .smoothing = 0.1}),
      cross_entropy_case("cross_entropy/none",
                         {.sizes = {2, 40, 3}, .ignored = 3, .smoothing = 0.2, .reduction = Reduction::none}),
      cross_entropy_case("cross_entropy/sum", {.sizes = {6, 5}, .weighted = true, .reduction = Reduction::sum}),
      nll_case("nll_loss", {.sizes = {6, 5}, .weighted = true, .ignored = 2}),
      nll_case("nll_loss/none", {.sizes = {2, 5, 3}, .reduction = Reduction::none}),
      nll_case("nll_loss/sum", {.sizes = {4, 5}, .reduction = Reduction::sum}),
      pair_case(
          "mse_loss", [](const Tensor& x, const Tensor& t) { return mse_loss(x, t); },
          [](double x, double t) { return (x - t) * (x - t); }, {{4, 7}}),
      pair_case(
          "l1_loss", [](const Tensor& x, const Tensor& t) { return l1_loss(x, t); },
          [](double x, double t) { return std::fabs(x - t); }, far),
      pair_case(
          "huber_loss", [](const Tensor& x, const Tensor& t) { return huber_loss(x, t, {.delta = 0.7}); },
          [](double x, double t) {
            const double d = std::fabs(x - t);
            return d <= 0.7 ? d * d / 2 : 0.7 * (d - 0.35);
          },
          {{4, 7}}),
      pair_case(
          "bce_with_logits", [](const Tensor& x, const Tensor& t) { return bce_with_logits(x, t); }, logistic, unit),
      {.name = "bce_with_logits/weights",
       .inputs = {{{4, 3}}, {{4, 3}, In::floating, 0, 1}},
       .run =
           [](const Tensors& x) {
             const Tensor weight = from<double>({1, 2, 0, 3}, {4, 1}, x[0].device()).to(x[0].dtype());
             const Tensor positive = from<double>({0.5, 1, 4}, {3}, x[0].device()).to(x[0].dtype());
             return bce_with_logits(x[0], x[1],
                                    {.weight = weight, .positive_weight = positive, .reduction = Reduction::none});
           },
       .reference =
           [](const Refs& x) {
             const double weight[] = {1, 2, 0, 3}, positive[] = {0.5, 1, 4};
             Ref y({4, 3});
             for (int64_t i = 0; i < 4; ++i)
               for (int64_t j = 0; j < 3; ++j) {
                 const double t = x[1](i, j);
                 y(i, j) = weight[i] * (positive[j] * t * logistic(x[0](i, j), 1) + (1 - t) * logistic(x[0](i, j), 0));
               }
             return y;
           }},
  };
}

}  // namespace weft::testing
