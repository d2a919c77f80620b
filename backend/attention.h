// AttentionProblem: what an attention computes, and the ways to compute it, ranked.
#pragma once

#include "backend/lower_options.h"
#include "runtime/kernels/kernel_table.h"
#include "runtime/plan/plan.h"

#include <vector>

namespace cgc::backend {

/// softmax(scale q k^T + mask) v for each head, without the operands' places. q and the result are
/// [batch, heads, queries, width], k and v [batch, heads, keys, width], all of `dtype`. No size is
/// 0.
struct AttentionProblem {
  DType dtype = DType::F16;
  int64_t batch = 0, heads = 0, queries = 0, keys = 0, width = 0;
  bool masked = false; ///< A mask [batch, heads, queries, keys] is added to the scores.
  bool causal = false; ///< Query i attends to keys 0 to i.
  double scale = 1;
};

/// A kernel and the launch shape of one of its launches.
struct AttentionChoice {
  const Kernel *kernel;
  uint32_t grid[3] = {1, 1, 1}, threads = 0, sharedBytes = 0;
  /// attention: warps that share 16 queries. attention_resident_kv: tiles of an item, and stages.
  int64_t splits = 0, tiles = 0, stages = 0;
};

/// The kernels for `problem` on `gpu`, the one that a plan uses first. A kernel's check may still
/// refuse the operands. The order is as measured on an H200
/// (docs/log/2026-11-21-attention-kernels.md, docs/log/2026-11-22-attention-whole.md).
std::vector<AttentionChoice> attentionCandidates(const AttentionProblem &problem,
                                                 const GpuTarget &gpu);

/// The launch of `choice` for `problem`, without its tensors: q, k, v and, if the kernel reads
/// four, the mask.
KernelLaunch attentionLaunch(const AttentionProblem &problem, const AttentionChoice &choice);

} // namespace cgc::backend
