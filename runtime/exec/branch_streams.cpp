// BranchStreams: forks at the first record of a parallel region, and joins after its last one.
#include "runtime/exec/branch_streams.h"

#include "runtime/base/check.h"

namespace cgc {
namespace {

/// Enqueues one bucket.
class BranchedRun {
public:
  /// One of the further branches.
  struct Side {
    cudaStream_t stream;
    cudaEvent_t done;
    bool isForked = false; ///< It has work that the context's stream has not waited for.
  };
  BranchedRun(OpProvider *provider, cudaStream_t stream, cudaEvent_t begun, std::vector<Side> sides)
      : provider_(provider), stream_(stream), begun_(begun), sides_(std::move(sides)) {}

  /// Enqueues a record, and returns its stream.
  Result<cudaStream_t> add(const BoundRecord &record) {
    if (record.branch == 0) {
      CGC_TRY(join());
      inRegion_ = false;
    } else if (!inRegion_ && !sides_.empty()) {
      // Recorded before any work of the region, so that its branches do not wait for each other.
      CGC_TRY(CGC_CUDA(cudaEventRecord(begun_, stream_), "cannot record an event"));
      inRegion_ = true;
    }
    CGC_ASSIGN_OR_RETURN(const cudaStream_t on, streamOf(record.branch));
    const auto enqueueIt = [&] { return enqueue(record, DeviceKind::Cuda, on); };
    const bool isAten = std::holds_alternative<BoundAtenCall>(record.op);
    const Status status = isAten && provider_ ? provider_->onStream(on, enqueueIt) : enqueueIt();
    if (!status.isOk())
      return status.withContext(record.name);
    return on;
  }

  /// Lets the context's stream wait for all branches. Returns the first error, but tries all.
  Status join() {
    Status first;
    for (Side &side : sides_) {
      if (!std::exchange(side.isForked, false))
        continue;
      Status status = CGC_CUDA(cudaEventRecord(side.done, side.stream), "cannot record an event");
      if (status.isOk())
        status = waitFor(side.done, stream_);
      if (first.isOk())
        first = std::move(status);
    }
    return first;
  }

private:
  static Status waitFor(cudaEvent_t event, cudaStream_t stream) {
    return CGC_CUDA(cudaStreamWaitEvent(stream, event, 0), "cannot wait for an event");
  }

  Result<cudaStream_t> streamOf(uint32_t branch) {
    if (branch <= 1)
      return stream_;
    CGC_CHECK(branch - 2 < sides_.size() && "there is a stream for each branch");
    Side &side = sides_[branch - 2];
    if (!side.isForked) {
      CGC_TRY(waitFor(begun_, side.stream));
      side.isForked = true;
    }
    return side.stream;
  }

  OpProvider *provider_;
  cudaStream_t stream_;
  cudaEvent_t begun_;
  std::vector<Side> sides_;
  bool inRegion_ = false;
};

} // namespace

Result<BranchStreams> BranchStreams::create(uint32_t largestBranch) {
  BranchStreams streams;
  for (uint32_t branch = 2; branch <= largestBranch; ++branch) {
    Branch &made = streams.branches_.emplace_back();
    CGC_ASSIGN_OR_RETURN(made.stream, createStream());
    CGC_ASSIGN_OR_RETURN(made.done, createEvent());
  }
  if (!streams.branches_.empty()) {
    CGC_ASSIGN_OR_RETURN(streams.begun_, createEvent());
  }
  return streams;
}

Status BranchStreams::enqueue(const std::vector<BoundRecord> &records, OpProvider *provider,
                              cudaStream_t stream,
                              const std::function<Status(size_t, cudaStream_t)> &after) const {
  std::vector<BranchedRun::Side> sides;
  for (const Branch &branch : branches_)
    sides.push_back({branch.stream.get(), branch.done.get()});
  BranchedRun run(provider, stream, begun_.get(), std::move(sides));
  const auto enqueueAllOf = [&]() -> Status {
    for (size_t i = 0; i < records.size(); ++i) {
      CGC_ASSIGN_OR_RETURN(const cudaStream_t on, run.add(records[i]));
      if (after)
        CGC_TRY(after(i, on));
    }
    return Status::ok();
  };
  const Status enqueued = enqueueAllOf();
  Status joined = run.join();
  return enqueued.isOk() ? joined : enqueued;
}

std::vector<cudaStream_t> BranchStreams::streams() const {
  std::vector<cudaStream_t> streams;
  for (const Branch &branch : branches_)
    streams.push_back(branch.stream.get());
  return streams;
}

} // namespace cgc
