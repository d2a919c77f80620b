// BranchStreams: enqueues the records of a bucket on several streams, one for each parallel branch.
#pragma once

#include "runtime/exec/bind.h"

#include <functional>
#include <span>
#include <vector>

namespace cgc {

/// What BranchStreams::enqueue calls with the index of a record and its stream.
struct RecordHooks {
  using Hook = std::function<Status(size_t, cudaStream_t)>;
  Hook before = {}; ///< Before the record is enqueued, after its waits.
  Hook after = {};  ///< After it was enqueued.
};

/// The streams of branches beside that of a context, with the events that order them. Branch 0 and
/// branch 1 run on the context's stream, each further branch and kCollectiveBranch on one of these.
class BranchStreams final {
public:
  /// Streams for branches up to `largestBranch` on the current GPU, none for 0 and 1, and one for
  /// up to `collectives` collectives of kCollectiveBranch, if that is not 0.
  static Result<BranchStreams> create(uint32_t largestBranch, size_t collectives = 0);

  /// Enqueues all records after the work on `stream`, each branch on its own stream, and lets
  /// `stream` wait for all of them, also after an error. The records may be in branches up to
  /// `largestBranch`, and have as many collectives as create() was told. `provider` (null if not
  /// needed) is set to the stream of each ATen record. During a capture of `stream`, branches
  /// become parallel paths of the graph.
  Status enqueue(const std::vector<BoundRecord> &records, OpProvider *provider, cudaStream_t stream,
                 const RecordHooks &hooks = {}) const;

  /// The streams, without those of the context and of collectives.
  std::vector<cudaStream_t> streams() const;

private:
  struct Branch {
    CudaStream stream;
    CudaEvent done;
  };
  std::vector<Branch> branches_; ///< Of branch 2 and up.
  CudaEvent begun_;              ///< A parallel region begins.
  CudaStream collectives_;       ///< Of kCollectiveBranch.
  CudaEvent operands_;           ///< What the next collective reads is there.
  std::vector<CudaEvent> ended_; ///< By collective of a bucket.
};

} // namespace cgc
