// Communicator::Impl: the collectives of a communicator on a stream.
#pragma once

#include "runtime/base/dtype.h"
#include "runtime/exec/communicator.h"
#include "runtime/exec/cuda_support.h"
#include "runtime/plan/collective_call.h"

namespace cgc {

/// The memory of one tensor of a collective, dense.
struct CollectivePart {
  const void *operand;
  void *result;
  size_t operandElements; ///< Of one rank; those of the result follow from kind and ranks.
  DType dtype;
};

/// Enqueues a collective on `stream`, or runs it before returning if the ranks have no GPU. All
/// parts in one group of NCCL. May be called while the stream is being captured, on all ranks alike.
/// Device if NCCL refuses or the communicator is aborted.
Status enqueueCollective(Communicator &communicator, CollectiveKind kind, Reduction reduction,
                         std::span<const CollectivePart> parts, cudaStream_t stream);

/// Waits for `event` as long as the communicator's timeout, and looks for asynchronous errors
/// meanwhile. After an error or the timeout it aborts the communicator, waits for the event and
/// fails: with NCCL's error, or with Device, saying what it waited for ("step 5").
Status waitWithin(Communicator &communicator, cudaEvent_t event, const std::string &what);

} // namespace cgc
