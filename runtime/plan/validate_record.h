// checkRecord: the part of validate() that looks at one record by itself.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace cgc {

/// Checks the fields of `record`, one of `bucket` in `plan`, whose tensors are valid: references to
/// tensors and locations, names, launch shapes, the arguments of calls, the operands of copies.
/// InvalidFile says what is wrong; the caller adds which record it is.
Status checkRecord(const PlanData &plan, const Bucket &bucket, const LaunchRecord &record);

} // namespace cgc
