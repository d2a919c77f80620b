// scheduleCollectives: the order of collectives between the records of parallel branches.
#pragma once

#include "runtime/plan/plan.h"

#include <functional>

namespace cgc::backend {

/// The estimated microseconds of a record.
using RecordMicros = std::function<double(const LaunchRecord &)>;

/// Sorts the records of a bucket that has collectives of kCollectiveBranch by the estimated times
/// at which they end. Collectives run in the order of the plan: one whose operands come late would
/// hold up those behind it, which another branch has had ready for long. Of records of branch 0 in
/// succession, those that wait for fewer collectives come first. Keeps the order of records
/// of one branch, of those before and after a record of branch 0, and of records that use the same
/// memory.
void scheduleCollectives(Bucket &bucket, const RecordMicros &micros);

} // namespace cgc::backend
