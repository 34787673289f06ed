// Golden rows of loss.
#include <gtest/gtest.h>

#include "autograd/ops/loss.h"
#include "tests/golden/golden.h"

namespace weft::testing {
namespace {

TEST(Golden, loss) {
  std::vector<GoldenRow> rows = {{"bce_with_logits/large", [](Inputs in) { return bce_with_logits(in[0], in[1]); }}};
  for (const auto& [r, reduction] : {std::pair<std::string, Reduction>{"mean", Reduction::mean},
                                     {"sum", Reduction::sum},
                                     {"none", Reduction::none}}) {
    const auto add = [&, r = r](const std::string& name, std::function<Results(Inputs)> run) {
      rows.push_back({name + r, std::move(run)});
    };
    const Reduction how = reduction;
    add("nll/", [how](Inputs in) { return nll_loss(in[0], in[1], {.reduction = how}); });
    add("nll/weight_ignore_",
        [how](Inputs in) { return nll_loss(in[0], in[1], {.weight = in[2], .ignore_index = 1, .reduction = how}); });
    add("cross_entropy/", [how](Inputs in) { return cross_entropy(in[0], in[1], {.reduction = how}); });
    add("cross_entropy/ignore_",
        [how](Inputs in) { return cross_entropy(in[0], in[1], {.ignore_index = 1, .reduction = how}); });
    add("cross_entropy/weight_",
        [how](Inputs in) { return cross_entropy(in[0], in[1], {.weight = in[2], .reduction = how}); });
    add("cross_entropy/smoothing_",
        [how](Inputs in) { return cross_entropy(in[0], in[1], {.label_smoothing = 0.1, .reduction = how}); });
    add("cross_entropy/everything_", [how](Inputs in) {
      return cross_entropy(in[0], in[1],
                           {.weight = in[2], .ignore_index = 1, .label_smoothing = 0.2, .reduction = how});
    });
    add("cross_entropy/image_",
        [how](Inputs in) { return cross_entropy(in[0], in[1], {.ignore_index = 0, .reduction = how}); });
    add("bce_with_logits/", [how](Inputs in) { return bce_with_logits(in[0], in[1], {.reduction = how}); });
    add("bce_with_logits/weights_", [how](Inputs in) {
      return bce_with_logits(in[0], in[1], {.weight = in[2], .positive_weight = in[3], .reduction = how});
    });
    add("mse/", [how](Inputs in) { return mse_loss(in[0], in[1], {.reduction = how}); });
    add("l1/", [how](Inputs in) { return l1_loss(in[0], in[1], {.reduction = how}); });
    add("huber/", [how](Inputs in) { return huber_loss(in[0], in[1], {.delta = 0.75, .reduction = how}); });
  }
  check_golden("loss", rows);
}

}  // namespace
}  // namespace weft::testing
