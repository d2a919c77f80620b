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
  /// The stream of collectives and its events.
  struct Collectives {
    cudaStream_t stream;
    cudaEvent_t operands;
    std::vector<cudaEvent_t> ended;
  };
  BranchedRun(OpProvider *provider, cudaStream_t stream, cudaEvent_t begun, std::vector<Side> sides,
              Collectives collectives, const RecordHooks &hooks)
      : provider_(provider), stream_(stream), begun_(begun), sides_(std::move(sides)),
        collectives_(std::move(collectives)), hooks_(hooks) {}

  /// Enqueues record `i`.
  Status add(size_t i, const BoundRecord &record) {
    if (record.branch == kCollectiveBranch)
      return addCollective(i, record).withContext(record.name);
    if (record.branch == 0) {
      CGC_TRY(join());
      inRegion_ = false;
    } else if (!inRegion_ && !sides_.empty()) {
      // Recorded before any work of the region, so that its branches do not wait for each other.
      CGC_TRY(CGC_CUDA(cudaEventRecord(begun_, stream_), "cannot record an event"));
      inRegion_ = true;
    }
    CGC_ASSIGN_OR_RETURN(const cudaStream_t on, streamOf(record.branch));
    if (record.waits > 0)
      CGC_TRY(waitForCollectives(record.waits, on));
    const auto enqueueIt = [&] { return enqueueWithHooks(i, record, on); };
    const bool isAten = std::holds_alternative<BoundAtenCall>(record.op);
    const Status status = isAten && provider_ ? provider_->onStream(on, enqueueIt) : enqueueIt();
    return status.withContext(record.name);
  }

  /// Lets the context's stream wait for all that was enqueued. Returns the first error, but tries
  /// all.
  Status finish() {
    const Status branches = join();
    Status collectives = ended_ > 0 ? waitForCollectives(ended_, stream_) : Status::ok();
    return branches.isOk() ? collectives : branches;
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

  /// Enqueues a collective after the branches that it waits for.
  Status addCollective(size_t i, const BoundRecord &record) {
    CGC_CHECK(ended_ < collectives_.ended.size() && "there is an event for each collective");
    const auto follow = [&](cudaStream_t stream) -> Status {
      CGC_TRY(CGC_CUDA(cudaEventRecord(collectives_.operands, stream), "cannot record an event"));
      return waitFor(collectives_.operands, collectives_.stream);
    };
    // Bits 0 and 1 are the context's stream. The first collective follows it in any case, so that
    // its stream is captured with it.
    if (ended_ == 0 || (record.waits & 3))
      CGC_TRY(follow(stream_));
    for (size_t side = 0; side < sides_.size(); ++side)
      if (sides_[side].isForked && (record.waits >> (side + 2) & 1))
        CGC_TRY(follow(sides_[side].stream));
    CGC_TRY(enqueueWithHooks(i, record, collectives_.stream));
    const cudaEvent_t ended = collectives_.ended[ended_++];
    return CGC_CUDA(cudaEventRecord(ended, collectives_.stream), "cannot record an event");
  }

  Status enqueueWithHooks(size_t i, const BoundRecord &record, cudaStream_t on) {
    if (hooks_.before)
      CGC_TRY(hooks_.before(i, on));
    CGC_TRY(enqueue(record, DeviceKind::Cuda, on));
    return hooks_.after ? hooks_.after(i, on) : Status::ok();
  }

  /// Lets `stream` wait for the first `count` collectives.
  Status waitForCollectives(uint32_t count, cudaStream_t stream) {
    CGC_CHECK(count <= ended_ && "a record waits for collectives before it");
    uint32_t &waited = waited_[stream];
    return std::exchange(waited, std::max(waited, count)) >= count
               ? Status::ok()
               : waitFor(collectives_.ended[count - 1], stream);
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
  Collectives collectives_;
  uint32_t ended_ = 0; ///< The collectives that were enqueued.
  const RecordHooks &hooks_;
  std::map<cudaStream_t, uint32_t> waited_; ///< The collectives that a stream has waited for.
};

} // namespace

Result<BranchStreams> BranchStreams::create(uint32_t largestBranch, size_t collectives) {
  BranchStreams streams;
  for (uint32_t branch = 2; branch <= largestBranch; ++branch) {
    Branch &made = streams.branches_.emplace_back();
    CGC_ASSIGN_OR_RETURN(made.stream, createStream());
    CGC_ASSIGN_OR_RETURN(made.done, createEvent());
  }
  if (!streams.branches_.empty()) {
    CGC_ASSIGN_OR_RETURN(streams.begun_, createEvent());
  }
  if (collectives > 0) {
    CGC_ASSIGN_OR_RETURN(streams.collectives_, createStream());
    CGC_ASSIGN_OR_RETURN(streams.operands_, createEvent());
  }
  for (size_t i = 0; i < collectives; ++i) {
    CGC_ASSIGN_OR_RETURN(CudaEvent ended, createEvent());
    streams.ended_.push_back(std::move(ended));
  }
  return streams;
}

Status BranchStreams::enqueue(const std::vector<BoundRecord> &records, OpProvider *provider,
                              cudaStream_t stream, const RecordHooks &hooks) const {
  std::vector<BranchedRun::Side> sides;
  for (const Branch &branch : branches_)
    sides.push_back({branch.stream.get(), branch.done.get()});
  BranchedRun::Collectives collectives{collectives_.get(), operands_.get(), {}};
  for (const CudaEvent &ended : ended_)
    collectives.ended.push_back(ended.get());
  BranchedRun run(provider, stream, begun_.get(), std::move(sides), std::move(collectives), hooks);
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
