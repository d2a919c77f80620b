// Pointwise ops: lowers them to the kernels elementwise, compare and where.
#pragma once

#include "backend/bucket_builder.h"

namespace cgc::backend {

/// Places the result and adds the record if elementwise, compare or where computes the op; else
/// returns false and adds nothing.
bool launchPointwise(const ir::Node &node, BucketBuilder &builder);

} // namespace cgc::backend
