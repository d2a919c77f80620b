// Pointwise ops: launched as elementwise, compare or where.
#pragma once

#include "backend/bucket_builder.h"

namespace cgc::backend {

/// If the op is one that elementwise, compare or where computes: places the result and adds the
/// record.
bool launchPointwise(const ir::Node &node, BucketBuilder &builder);

} // namespace cgc::backend
