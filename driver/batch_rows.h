// Batch rows: proves for the entries of a plan that the rows of a batch are independent, and finds
// the batch dimensions.
#pragma once

#include "driver/buckets.h"
#include "ir/module.h"
#include "runtime/plan/plan.h"

#include <vector>

namespace cgc::driver {

/// Sets IoTensor::batchDim and Entry::rows of `plan`, which was compiled from `buckets` of `root`,
/// after its methods were inlined. The batch is dimension 0 of the inputs. Never fails: what cannot
/// be proven is the reason in Entry::rows.
void findBatchRows(const ir::Module &root, const std::vector<BucketSpec> &buckets, PlanData &plan);

} // namespace cgc::driver
