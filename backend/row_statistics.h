// Row statistics, the optional last result of several ops: decides before the op is lowered whether
// they are needed, and afterwards where they are.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Memory for the row statistics that `node` has as its last result, for the kernel that computes
/// the result before it to write. Nothing if `node` has none, or if no record will read them: a
/// cgc.norm_linear reads them only if it becomes a kernel of gemm_norm_*.
std::optional<Place> wantedRowStatistics(const ir::Node &node, BucketBuilder &builder);

/// Places the row statistics of `y`, the result before them, at `statistics`, which
/// wantedRowStatistics() has returned. If no kernel has `written` them, each cgc.norm_linear
/// normalizes its input itself; for other readers, records that compute them from y are added.
void placeRowStatistics(const ir::Node &node, const Place &y,
                        const std::optional<Place> &statistics, bool written,
                        BucketBuilder &builder);

} // namespace cgc::backend
