// lowerWholeProduct(): lowers a GEMM with all of its epilogue, for cgc.linear and cgc.norm_linear.
#pragma once

#include "backend/lower_gemm.h"

namespace cgc::backend {

/// Adds the records of `product`: one call with the epilogue that it supports, then the remaining
/// steps in place.
Status lowerWholeProduct(const Product &product, BucketBuilder &builder);

} // namespace cgc::backend
