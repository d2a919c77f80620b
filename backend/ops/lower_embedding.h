// embedInto(): lowers a table lookup, for embedding and cgc.embedding.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds the records that write rows `indices` of `weight` to `result`, which is dense. `positions`,
/// [T, E], is added to the rows of each sequence of T. If the indices are an input, their upper
/// bound becomes the number of rows. Returns whether the record also writes `rowStatistics`, those
/// of the result.
bool embedInto(const Place &weight, Place indices, const std::optional<Place> &positions,
               const Place &result, const std::optional<Place> &rowStatistics,
               BucketBuilder &builder);

} // namespace cgc::backend
