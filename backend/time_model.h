// The model of a bucket's time, by which a runtime chooses between the buckets of an entry.
#pragma once

#include "runtime/plan/plan.h"

namespace cgc::backend {

/// The part of one record of `bucket`, with its launch, in the time that the function below
/// returns, in microseconds.
double estimateMicros(const LaunchRecord &record, const Bucket &bucket, DeviceKind target,
                      int64_t multiprocessors);

/// Returns the estimated time of one run of `bucket`, which is lowered for `target`, in
/// microseconds: the sum over its records of a launch and of the larger of the time of its
/// multiplications and that of the bytes that it reads and writes. For GEMM kernels of our own the
/// model of gemm_model.h counts. Of a parallel region (branches.h) the branch counts that takes the
/// longest. `multiprocessors` is the number of SMs of the GPU; any for target
/// cpu. Made to compare buckets of one entry: the constants are those of one H200 and of one CPU.
double estimateMicros(const Bucket &bucket, DeviceKind target, int64_t multiprocessors);

} // namespace cgc::backend
