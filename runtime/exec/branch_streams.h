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
/// branch 1 run on the context's stream, each further branch and each detached one on one of these.
class BranchStreams final {
public:
  /// Streams for branches up to `largestBranch` on the current GPU, none for 0 and 1, and one for
  /// each detached branch of up to so many records, if these are not 0.
  static Result<BranchStreams> create(uint32_t largestBranch, const DetachedCounts &detached = {});

  /// Enqueues all records after the work on `stream`, each branch on its own stream, and lets
  /// `stream` wait for all of them, also after an error. The records may be in branches up to
  /// `largestBranch`, and in detached ones as many as create() was told. `provider` (null if not
  /// needed) is set to the stream of each ATen record. During a capture of `stream`, branches
  /// become parallel paths of the graph.
  Status enqueue(const std::vector<BoundRecord> &records, OpProvider *provider, cudaStream_t stream,
                 const RecordHooks &hooks = {}) const;

  /// The streams, without those of the context and of detached branches.
  std::vector<cudaStream_t> streams() const;

private:
  struct Branch {
    CudaStream stream;
    CudaEvent done;
  };
  std::vector<Branch> branches_; ///< Of branch 2 and up.
  CudaEvent begun_;              ///< A parallel region begins.
  struct Detached {
    CudaStream stream;
    CudaEvent ready;              ///< What the next record waits for in another branch is done.
    std::vector<CudaEvent> ended; ///< By record.
  };
  std::array<Detached, kDetachedBranches> detached_;
};

} // namespace cgc
