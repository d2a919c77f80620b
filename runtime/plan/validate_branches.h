// checkBranches: the part of validate() that looks at the parallel branches of a bucket.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace cgc {

/// Checks that each branch exists, that a bucket with host calls has none, and that records without
/// an order (branches.h) do not touch memory that one of them writes. The memory of a strided
/// tensor is all that lies between its first and its last byte. Tensors and records of `bucket` are
/// valid, so that no record writes to a weight or an input. InvalidFile says what is wrong; the
/// caller adds which bucket it is.
Status checkBranches(const Bucket &bucket);

} // namespace cgc
