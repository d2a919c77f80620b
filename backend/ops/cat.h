// concatenate(): lowers a concatenation, for cat and stack.
#pragma once

#include "backend/lowering.h"

namespace cgc::backend {

/// Adds the records that concatenate `parts` along dimension `dim` of `result`. Every part has the
/// rank of `result`, except that an empty part may be [0].
void concatenate(llvm::ArrayRef<Place> parts, int64_t dim, const Place &result,
                 BucketBuilder &builder);

} // namespace cgc::backend
