// launchEmbedding(): launches a table lookup, for embedding and cgc.embedding.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds the launch that writes rows `indices` of `weight` to `result`, which is dense, and returns
/// true. `positions`, [T, E], is added to the rows of each sequence of T. If `rowStatistics` are
/// given, those of the result are written too. Returns false if no kernel takes the operands.
bool launchEmbedding(const Place &weight, const Place &indices,
                     const std::optional<Place> &positions, const Place &result,
                     const std::optional<Place> &rowStatistics, BucketBuilder &builder);

} // namespace cgc::backend
