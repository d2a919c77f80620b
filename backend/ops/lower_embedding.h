// What embedding and cgc.embedding share.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds the records that put rows `indices` of `weight` into `result`, which is dense; with
/// `positions`, [T, E], added to the rows of each sequence of T. Bounds the indices if they are an
/// input.
void embedInto(const Place &weight, Place indices, const std::optional<Place> &positions,
               const Place &result, BucketBuilder &builder);

} // namespace cgc::backend
