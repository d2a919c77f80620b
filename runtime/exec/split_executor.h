// SplitExecutor: runs a bucket with host calls on a GPU.
#pragma once

#include "runtime/exec/executors.h"

#include <variant>
#include <vector>

namespace cgc {

/// Replays a graph for each sequence of records between two host calls, and makes the host calls
/// between the replays. Everything is in the order of the stream, so that it waits for nothing.
class SplitExecutor final {
public:
  /// Does the same as GraphExecutor::warmUp, with zeros as the results of the host calls, which are
  /// not made: zero is a valid index and a harmless number.
  static Status warmUp(const std::vector<BoundRecord> &records, OpProvider *provider,
                       cudaStream_t stream);
  /// Captures each sequence of records as GraphExecutor::capture does. `records`, bound to those of
  /// `bucket`, and `provider` (may be null) are borrowed and must outlive the executor.
  static Result<SplitExecutor> capture(const std::vector<BoundRecord> &records,
                                       const Bucket &bucket, OpProvider *provider,
                                       cudaStream_t stream);

  Status run(cudaStream_t stream);
  /// Nodes in all graphs.
  size_t nodes() const;
  /// Milliseconds that capture, instantiation and upload of all graphs took.
  double captureMillis() const;

private:
  SplitExecutor() = default;
  /// A graph, or a record that is a host call.
  std::vector<std::variant<GraphExecutor, const BoundRecord *>> steps_;
};

} // namespace cgc
