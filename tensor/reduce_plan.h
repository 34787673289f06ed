// What the reductions of all devices start from: kept and reduced dimensions, sorted and merged by x's strides.
#pragma once

#include <array>

#include "tensor/tensor.h"

namespace weft {

struct ReduceDim {
  int64_t size, x, out;  // strides in elements; `out` is 0 for a reduced dimension
};

/// Some dimensions, innermost first.
struct ReduceDims {
  std::array<ReduceDim, kMaxDims> dim{};
  size_t used = 0;
  int64_t numel = 1;

  void add(ReduceDim d) {
    numel *= d.size;
    if (used > 0) {
      ReduceDim& last = dim[used - 1];
      if (d.x == last.x * last.size && d.out == last.out * last.size) {
        last.size *= d.size;
        return;
      }
    }
    dim[used++] = d;
  }
};

/// Which dimensions of x are reduced into an `out` that has 1 for them.
struct ReducePlan {
  ReduceDims kept, reduced;
  bool columns = false;  // the densest dimension is kept

  ReducePlan(const Tensor& x, const Tensor& out) {
    if (out.numel() == 1 && x.is_contiguous()) {
      reduced.add({x.numel(), 1, 0});
      return;
    }
    for (int64_t d : by_rising_stride(x.strides())) {
      const int64_t size = x.sizes()[d];
      if (size == 1) continue;
      if (out.sizes()[d] == size)
        kept.add({size, x.strides()[d], out.strides()[d]});
      else
        reduced.add({size, x.strides()[d], 0});
    }
    columns = kept.used > 0 && kept.dim[0].x != 0 &&
              (reduced.used == 0 || reduced.dim[0].x == 0 || kept.dim[0].x < reduced.dim[0].x);
  }
};

}  // namespace weft
