// Tensors as text: aligned columns, long dimensions cut in the middle, shape and type on the last line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tensor/kernels.h"
#include "tensor/view.h"

namespace weft {
namespace {

constexpr int64_t kWhole = 400;    // tensors of up to so many elements show long rows
constexpr int64_t kLongEdge = 10;  // values at each end of a dimension that is cut, in those
constexpr int64_t kEdge = 3;       // and in larger ones

int64_t edge_of(const Tensor& x) { return x.numel() <= kWhole ? kLongEdge : kEdge; }

/// x without the middles that are not shown, on the CPU.
Tensor shown_part(const Tensor& x, int64_t edge) {
  Tensor part = x;
  for (int64_t d = 0; d < x.dim(); ++d) {
    const int64_t n = part.sizes()[d];
    if (n <= 2 * edge) continue;
    Shape sizes = part.sizes();
    sizes[d] = 2 * edge;
    Tensor cut = empty(sizes, {x.dtype(), x.device()});
    Tensor head = raw::narrow(cut, d, 0, edge), tail = raw::narrow(cut, d, edge, edge);
    kernels::copy(raw::narrow(part, d, 0, edge), head);
    kernels::copy(raw::narrow(part, d, n - edge, edge), tail);
    part = cut;
  }
  return part;
}

std::vector<std::string> floating_texts(const std::vector<double>& values) {
  bool whole = true;
  double smallest = 1, largest = 0;
  for (double v : values) {
    if (!std::isfinite(v) || v == 0) continue;
    whole = whole && v == std::nearbyint(v);
    smallest = std::min(smallest, std::fabs(v));
    largest = std::max(largest, std::fabs(v));
  }
  const bool scientific = largest >= 1e6 || smallest < 1e-4;
  std::vector<std::string> texts;
  for (double v : values) {
    if (!std::isfinite(v))
      texts.push_back(std::isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    else if (scientific)
      texts.push_back(fmt::format("{:.4e}", v));
    else if (whole)
      texts.push_back(fmt::format("{:.0f}.", v));
    else
      texts.push_back(fmt::format("{:.4f}", v));
  }
  return texts;
}

std::vector<std::string> texts_of(const Tensor& x) {
  if (is_floating(x.dtype())) return floating_texts(x.to_vector<double>());
  std::vector<std::string> texts;
  for (int64_t v : x.to_vector<int64_t>())
    texts.push_back(x.dtype() != boolean ? fmt::format("{}", v) : v != 0 ? "true" : "false");
  return texts;
}

struct Printer {
  const Shape& sizes;  // of the tensor
  int64_t edge;
  std::vector<std::string> texts;  // of the shown part, row-major
  size_t width = 0;
  size_t next = 0;
  std::string out;

  void print(int64_t d) {
    if (d == sizes.size()) {
      out += fmt::format("{:>{}}", texts[next++], width);
      return;
    }
    const int64_t n = sizes[d];
    const bool cut = n > 2 * edge;
    const int64_t shown = cut ? 2 * edge : n;
    const bool innermost = d + 1 == sizes.size();
    std::string between = ",";
    between.append(static_cast<size_t>(sizes.size() - 1 - d), '\n')
        .append(innermost ? 1 : static_cast<size_t>(d + 1), ' ');
    out += '[';
    for (int64_t i = 0; i < shown; ++i) {
      if (i > 0) out += between;
      if (cut && i == edge) out.append("…").append(between);
      print(d + 1);
    }
    out += ']';
  }
};

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "undefined";
  std::string values;
  if (numel() == 0) {
    values = "[]";
  } else {
    Printer printer{sizes(), edge_of(*this), texts_of(shown_part(*this, edge_of(*this))), 0, 0, {}};
    for (const std::string& text : printer.texts) printer.width = std::max(printer.width, text.size());
    printer.print(0);
    values = std::move(printer.out);
  }
  return fmt::format("{}\n{} {} {}", values, weft::str(sizes()), weft::name(dtype()), weft::name(device()));
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << x.str(); }

}  // namespace weft
