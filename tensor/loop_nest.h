// The loop nest of elementwise kernels: dimensions sorted and merged so that the innermost is as long and as dense as
// the strides allow. Each device runs it in its own way.
#pragma once

#include <algorithm>
#include <array>

#include "tensor/tensor.h"

namespace weft {

/// N operands of the same sizes; operand 0 is the output, whose memory order is followed.
template <size_t N>
struct LoopNest {
  int64_t ndim = 1;
  int64_t numel = 0;
  std::array<int64_t, kMaxDims> sizes{};                   // innermost first
  std::array<std::array<int64_t, kMaxDims>, N> strides{};  // in elements

  explicit LoopNest(const std::array<const Tensor*, N>& operands) : numel(operands[0]->numel()) {
    if (std::ranges::all_of(operands, [](const Tensor* t) { return t->is_contiguous(); })) {
      sizes[0] = numel;
      for (auto& s : strides) s[0] = 1;
      return;
    }
    sort_and_merge(operands);
  }

 private:
  void sort_and_merge(const std::array<const Tensor*, N>& operands) {
    const Tensor& out = *operands[0];
    ndim = 0;
    for (int64_t d : by_rising_stride(out.strides())) {
      if (out.sizes()[d] == 1) continue;
      bool merges = ndim > 0;
      for (size_t i = 0; i < N && merges; ++i)
        merges = operands[i]->strides()[d] ==
                 strides[i][static_cast<size_t>(ndim - 1)] * sizes[static_cast<size_t>(ndim - 1)];
      if (merges) {
        sizes[static_cast<size_t>(ndim - 1)] *= out.sizes()[d];
        continue;
      }
      sizes[static_cast<size_t>(ndim)] = out.sizes()[d];
      for (size_t i = 0; i < N; ++i) strides[i][static_cast<size_t>(ndim)] = operands[i]->strides()[d];
      ++ndim;
    }
    if (ndim == 0) {  // one element
      ndim = 1;
      sizes[0] = numel;
    }
  }
};

}  // namespace weft
