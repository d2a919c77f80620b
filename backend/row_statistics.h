// Row statistics, the optional last result of several ops: decides before the op is lowered whether
// they are needed, and afterwards where they are. Readers of a result of an op's definition are
// those of the op's result.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Memory for the row statistics that `node` has as its last result, for the kernel that computes
/// the result before it to write. Nothing if `node` has none, or if no record will read them: a
/// cgc.norm_linear reads them only if it becomes a kernel of gemm_norm_*.
std::optional<Place> wantedRowStatistics(const ir::Node &node, BucketBuilder &builder);

/// Whether `value` is the row statistics of `node` and all readers can do without them.
bool isDispensable(const ir::Value &value, const ir::Node &node, const BucketBuilder &builder);

/// Places the row statistics of `node`, if it has some, where its kernel has `written` them.
/// Returns whether its readers can do without, if it has not: each cgc.norm_linear then normalizes
/// its input itself.
bool placeRowStatistics(const ir::Node &node, const std::optional<Place> &written,
                        BucketBuilder &builder);

} // namespace cgc::backend
