// Scaled dot-product attention (Vaswani et al., "Attention is all you need", NIPS 2017) in memory linear in the
// sequence.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace weft {

struct AttentionOptions {
  bool causal = false;  ///< query t of T sees the keys up to t + S - T: where T = S up to itself, the last one all
  Tensor mask = {};     ///< boolean [B, S], true where a key may be attended to; undefined: all
  std::optional<double> scale = {};  ///< of the products q · k; 1 / √D where it is not given
  double dropout = 0;  ///< share of the probabilities that is dropped; the others are divided by 1 - dropout
};

/// softmax(scale · q kᵀ) v over the keys that a query sees: q [B, H, T, D], k and v [B, G, S, D] → [B, H, T, D]. H is a
/// multiple of G: H / G heads in a row share the keys of a group (Ainslie et al., "GQA", EMNLP 2023). A query that sees
/// no key gives zeros. Keys that the mask excludes are never read, so what they hold does not matter, be it NaN.
/// The T × S scores are never stored: forward and backward make them tile by tile (Dao et al., "FlashAttention",
/// NeurIPS 2022). Fastest where the last dimension is dense; the result lies in memory as [B, T, H, D], so that joining
/// heads by
/// `.transpose(1, 2).flatten(2)` copies nothing. Results are the same bits for any number of threads.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});

/// The same where one product made queries, keys and values: qkv [B, T, 3 · H · D] with q first → [B, T, H · D].
/// Nothing is copied on the way in or out, and the gradient is one tensor.
Tensor self_attention(const Tensor& qkv, int64_t heads, const AttentionOptions& options = {});

}  // namespace weft
