// attention_backward_*: the launch shape and the check.
#pragma once

#include "runtime/kernels/attention/heads.h"

#include <algorithm>

namespace cgc {

/// Rows that a warp computes at a time: of queries, and then of keys.
inline constexpr int64_t kBackwardRows = 16;
inline constexpr int64_t kBackwardMaxWarps = 8;

/// Dynamic shared memory in bytes: all rows of a head, padded to multiples of 16 rows, and for
/// each query its row max, the inverse of its row sum, and delta, the dot product of dO and the
/// output. Rows are padded by 16 bytes against bank conflicts.
constexpr int64_t attentionBackwardSharedBytes(int64_t queries, int64_t keys, int64_t width) {
  const int64_t q = (queries + kBackwardRows - 1) / kBackwardRows * kBackwardRows,
                k = (keys + kBackwardRows - 1) / kBackwardRows * kBackwardRows;
  return 2 * (q + k) * (width + 8) * 2 + 3 * q * int64_t(sizeof(float));
}

/// The warps of a CTA: they share the groups of 16 rows evenly.
constexpr int64_t attentionBackwardWarps(int64_t queries, int64_t keys) {
  const int64_t groups = (std::max(queries, keys) + kBackwardRows - 1) / kBackwardRows,
                rounds = (groups + kBackwardMaxWarps - 1) / kBackwardMaxWarps;
  return (groups + rounds - 1) / rounds;
}

/// The kernel for heads of this width; null if there is none.
const Kernel *attentionBackwardKernel(DType dtype, int64_t width);

/// A checked launch.
struct AttentionBackwardLaunch {
  int64_t queries, keys;
  bool causal;
  double scale;
  HeadStrides dO, q, k, v, dQ, dK, dV;
};
/// Checks a launch of attentionBackwardKernel(dtype, width).
Result<AttentionBackwardLaunch> checkAttentionBackward(const LaunchView &launch, DType dtype,
                                                       int64_t width);

} // namespace cgc
