// scheduleDetached: the places of the records of detached branches between those of others.
#pragma once

#include "runtime/plan/plan.h"

#include <functional>

namespace cgc::backend {

/// The estimated microseconds of a record.
using RecordMicros = std::function<double(const LaunchRecord &)>;

/// Sorts the records of a bucket that has detached branches by the estimated times at which they
/// end, those of detached branches by the times at which they may begin. The records of a detached
/// branch run in the order of the plan: one whose operands come late would hold up those behind it,
/// which another branch has had ready for long. Keeps the order of records of one branch, of those
/// before and after a record of branch 0, and of records that use the same memory.
void scheduleDetached(Bucket &bucket, const RecordMicros &micros);

} // namespace cgc::backend
