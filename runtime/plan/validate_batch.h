// checkBatch: the part of validate() that looks at what a plan says about batches and times.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

namespace cgc {

/// Checks the batch dimensions, the proof of independent rows and the times of `entry`, whose
/// inputs and outputs are valid and equal in number in all of its buckets. The proof itself cannot
/// be checked; what it says about sizes is. InvalidFile says what is wrong; the caller adds which
/// entry it is.
Status checkBatch(const PlanData &plan, const Entry &entry);

} // namespace cgc
