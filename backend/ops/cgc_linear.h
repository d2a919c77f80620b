// What cgc.linear and cgc.norm_linear share.
#pragma once

#include "backend/lower_gemm.h"

namespace cgc::backend {

/// Adds the records of all of `product`: of what one call computes, then of the rest in place.
Status lowerWholeProduct(const Product &product, BucketBuilder &builder);

} // namespace cgc::backend
