// BranchStreams: forks at the first record of a parallel region, and joins after its last one.
#include "runtime/exec/branch_streams.h"

#include "runtime/base/check.h"

#include <algorithm>
#include <map>
#include <utility>

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
  /// A detached branch.
  struct Detached {
    cudaStream_t stream;
    cudaEvent_t ready;
    std::vector<cudaEvent_t> ended;
    uint32_t enqueued = 0;
  };
  using DetachedBranches = std::array<Detached, kDetachedBranches>;
  BranchedRun(OpProvider *provider, cudaStream_t stream, cudaEvent_t begun, std::vector<Side> sides,
              DetachedBranches detached, const RecordHooks &hooks)
      : provider_(provider), stream_(stream), begun_(begun), sides_(std::move(sides)),
        detached_(std::move(detached)), hooks_(hooks) {}

  /// Enqueues record `i`.
  Status add(size_t i, const BoundRecord &record) {
    if (isDetached(record.branch))
      return addDetached(i, record).withContext(record.name);
    if (record.branch == 0) {
      CGC_TRY(join());
      inRegion_ = false;
    } else if (!inRegion_ && !sides_.empty()) {
      // Recorded before any work of the region, so that its branches do not wait for each other.
      CGC_TRY(CGC_CUDA(cudaEventRecord(begun_, stream_), "cannot record an event"));
      inRegion_ = true;
    }
    CGC_ASSIGN_OR_RETURN(const cudaStream_t on, streamOf(record.branch));
    CGC_TRY(waitForDetached(record.waits.detached, on));
    const auto enqueueIt = [&] { return enqueueWithHooks(i, record, on); };
    const bool isAten = std::holds_alternative<BoundAtenCall>(record.op);
    const Status status = isAten && provider_ ? provider_->onStream(on, enqueueIt) : enqueueIt();
    return status.withContext(record.name);
  }

  /// Lets the context's stream wait for all that was enqueued. Returns the first error, but tries
  /// all.
  Status finish() {
    const Status branches = join();
    DetachedCounts all{};
    for (size_t d = 0; d < kDetachedBranches; ++d)
      all[d] = detached_[d].enqueued;
    Status detached = waitForDetached(all, stream_);
    return branches.isOk() ? detached : branches;
  }

private:
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

  /// Enqueues a record of a detached branch after what it waits for.
  Status addDetached(size_t i, const BoundRecord &record) {
    Detached &own = detached_[record.branch - kCollectiveBranch];
    CGC_CHECK(own.enqueued < own.ended.size() && "there is an event for each record");
    const auto follow = [&](cudaStream_t stream) -> Status {
      CGC_TRY(CGC_CUDA(cudaEventRecord(own.ready, stream), "cannot record an event"));
      return waitFor(own.ready, own.stream);
    };
    // Bits 0 and 1 are the context's stream. The first record follows some stream in any case, so
    // that its own is captured.
    const uint32_t branches = record.waits.branches;
    if ((branches & 3) || (own.enqueued == 0 && record.waits == DetachedWaits{}))
      CGC_TRY(follow(stream_));
    for (size_t side = 0; side < sides_.size(); ++side)
      if (sides_[side].isForked && (branches >> (side + 2) & 1))
        CGC_TRY(follow(sides_[side].stream));
    CGC_TRY(waitForDetached(record.waits.detached, own.stream));
    CGC_TRY(enqueueWithHooks(i, record, own.stream));
    const cudaEvent_t ended = own.ended[own.enqueued++];
    return CGC_CUDA(cudaEventRecord(ended, own.stream), "cannot record an event");
  }

  Status enqueueWithHooks(size_t i, const BoundRecord &record, cudaStream_t on) {
    if (hooks_.before)
      CGC_TRY(hooks_.before(i, on));
    CGC_TRY(enqueue(record, DeviceKind::Cuda, on));
    return hooks_.after ? hooks_.after(i, on) : Status::ok();
  }

  /// Lets `stream` wait for the first records of the detached branches, as many as `counts` says.
  /// Returns the first error, but tries all.
  Status waitForDetached(const DetachedCounts &counts, cudaStream_t stream) {
    Status first;
    for (size_t d = 0; d < kDetachedBranches; ++d) {
      const uint32_t count = counts[d];
      CGC_CHECK(count <= detached_[d].enqueued && "a record waits for records before it");
      uint32_t &waited = waited_[stream][d];
      if (std::exchange(waited, std::max(waited, count)) >= count)
        continue;
      if (Status status = waitFor(detached_[d].ended[count - 1], stream); first.isOk())
        first = std::move(status);
    }
    return first;
  }

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
  DetachedBranches detached_;
  const RecordHooks &hooks_;
  std::map<cudaStream_t, DetachedCounts> waited_; ///< What a stream has waited for.
};

} // namespace

Result<BranchStreams> BranchStreams::create(uint32_t largestBranch,
                                            const DetachedCounts &detached) {
  BranchStreams streams;
  for (uint32_t branch = 2; branch <= largestBranch; ++branch) {
    Branch &made = streams.branches_.emplace_back();
    CGC_ASSIGN_OR_RETURN(made.stream, createStream());
    CGC_ASSIGN_OR_RETURN(made.done, createEvent());
  }
  if (!streams.branches_.empty()) {
    CGC_ASSIGN_OR_RETURN(streams.begun_, createEvent());
  }
  for (size_t d = 0; d < kDetachedBranches; ++d) {
    if (detached[d] == 0)
      continue;
    Detached &made = streams.detached_[d];
    CGC_ASSIGN_OR_RETURN(made.stream, createStream());
    CGC_ASSIGN_OR_RETURN(made.ready, createEvent());
    for (uint32_t i = 0; i < detached[d]; ++i) {
      CGC_ASSIGN_OR_RETURN(CudaEvent ended, createEvent());
      made.ended.push_back(std::move(ended));
    }
  }
  return streams;
}

Status BranchStreams::enqueue(const std::vector<BoundRecord> &records, OpProvider *provider,
                              cudaStream_t stream, const RecordHooks &hooks) const {
  std::vector<BranchedRun::Side> sides;
  for (const Branch &branch : branches_)
    sides.push_back({branch.stream.get(), branch.done.get()});
  BranchedRun::DetachedBranches detached;
  for (size_t d = 0; d < kDetachedBranches; ++d) {
    detached[d].stream = detached_[d].stream.get();
    detached[d].ready = detached_[d].ready.get();
    for (const CudaEvent &ended : detached_[d].ended)
      detached[d].ended.push_back(ended.get());
  }
  BranchedRun run(provider, stream, begun_.get(), std::move(sides), std::move(detached), hooks);
  const auto enqueueAllOf = [&]() -> Status {
    for (size_t i = 0; i < records.size(); ++i) {
      CGC_TRY(run.add(i, records[i]));
    }
    return Status::ok();
  };
  const Status enqueued = enqueueAllOf();
  Status joined = run.finish();
  return enqueued.isOk() ? joined : enqueued;
}

std::vector<cudaStream_t> BranchStreams::streams() const {
  std::vector<cudaStream_t> streams;
  for (const Branch &branch : branches_)
    streams.push_back(branch.stream.get());
  return streams;
}

} // namespace cgc
