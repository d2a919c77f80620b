// What embedding and cgc.embedding share.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds the records that put rows `indices` of `weight` into `result`, which is dense. Bounds the
/// indices if they are an input.
void embedInto(const Place &weight, Place indices, Place result, BucketBuilder &builder);

} // namespace cgc::backend
