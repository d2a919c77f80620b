// Communicator::Impl: the collectives of a communicator on a stream.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/exec/communicator.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/plan/collective_call.h"

#include <functional>
#include <span>
#include <string>

namespace cgc {

/// The memory of one tensor of a collective, dense.
struct CollectivePart {
  const void *operand;
  void *result;
  size_t operandElements; ///< Of one rank; those of the result follow from kind and ranks.
  DType dtype;
};

/// Enqueues a collective on `stream`, or runs it before returning if the ranks have no GPU. All
/// parts in one group of NCCL. `root` is the rank whose operands a broadcast sends (none: rank 0),
/// or the only one that gets the results of an all-reduce (none: all). May be called while the
/// stream is being captured, on all ranks alike. Unsupported for dtypes that NCCL does not compute:
/// sums of bool, means of integers, reductions of i16. Device if NCCL refuses, which aborts the
/// communicator; its first failure if it has one.
Status enqueueCollective(Communicator &communicator, CollectiveKind kind, Reduction reduction,
                         std::span<const CollectivePart> parts, cudaStream_t stream,
                         std::optional<int> root = {});

/// Runs `body`, which waits for collectives, as long as the communicator's timeout, while a thread
/// looks for asynchronous errors. After an error or the timeout that thread aborts the
/// communicator, which lets the collectives complete; then this fails with NCCL's error, or with
/// Device, saying what it waited for ("step 5").
Status within(Communicator &communicator, const std::string &what,
              const std::function<Status()> &body);

/// Waits for `event`, whose device is current, as within() runs a body.
Status waitWithin(Communicator &communicator, cudaEvent_t event, const std::string &what);

} // namespace cgc
