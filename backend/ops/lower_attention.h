// The masks of attention.
#pragma once

#include "backend/bucket_builder.h"

namespace cgc::backend {

/// The mask as one that is added to scores in `dtype`, with dense columns: itself, or a temporary.
/// A bool mask becomes 0 where it holds, else -infinity.
Place additiveMask(Place mask, DType dtype, BucketBuilder &builder);

} // namespace cgc::backend
