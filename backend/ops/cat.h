// What cat and stack share.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds the records that put `parts` one after the other along dimension `dim` of `result`, all of
/// its rank but those that are [0].
void concatenate(llvm::ArrayRef<Place> parts, int64_t dim, const Place &result,
                 BucketBuilder &builder);

} // namespace cgc::backend
