// BranchStreams: enqueues the records of a bucket on several streams, one for each parallel branch.
#pragma once

#include "runtime/exec/bind.h"

#include <functional>
#include <span>
#include <vector>

namespace cgc {

/// The streams of branches beside that of a context, with the events that order them. Branch 0 and
/// branch 1 run on the context's stream, each further branch on one of these.
class BranchStreams final {
public:
  /// Streams for branches up to `largestBranch` on the current GPU. None for 0 and 1.
  static Result<BranchStreams> create(uint32_t largestBranch);

  /// Enqueues all records after the work on `stream`, each branch on its own stream, and lets
  /// `stream` wait for all of them, also after an error. The records may be in branches up to
  /// `largestBranch`. `provider` (null if not needed) is set to the stream of each ATen record.
  /// During a capture of `stream`, branches become parallel paths of the graph. Calls `after`, if
  /// given, with the index of each record once it is enqueued, and its stream.
  Status enqueue(const std::vector<BoundRecord> &records, OpProvider *provider, cudaStream_t stream,
                 const std::function<Status(size_t, cudaStream_t)> &after = nullptr) const;

  /// The streams, without that of the context.
  std::vector<cudaStream_t> streams() const;

private:
  struct Branch {
    CudaStream stream;
    CudaEvent done;
  };
  std::vector<Branch> branches_; ///< Of branch 2 and up.
  CudaEvent begun_;              ///< A parallel region begins.
};

} // namespace cgc
