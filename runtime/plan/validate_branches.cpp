// checkBranches: a sweep over the memory that the records of each parallel region touch.
#include "runtime/plan/validate_branches.h"

#include "runtime/plan/branches.h"
#include "runtime/plan/collective_call.h"

#include <algorithm>
#include <array>
#include <string>
#include <tuple>

namespace cgc {
namespace {

/// Memory that a record touches: the bytes [begin, end) of a buffer.
struct Access {
  BufferKind buffer;
  uint32_t index;
  uint64_t begin, end;
  size_t record;
  bool writes;
};

/// The accesses of a region to memory that records write, by buffer and begin.
std::vector<Access> accessesOf(const Bucket &bucket, const ParallelRegion &region) {
  std::vector<Access> accesses;
  for (size_t i = region.begin; i < region.end; ++i) {
    const LaunchRecord &record = bucket.records[i];
    if (isDetached(record.branch)) // Ordered by its memory.
      continue;
    for (const bool writes : {false, true})
      for (TensorId id : writes ? recordWrites(record) : recordReads(record)) {
        const TensorRef &tensor = bucket.tensors[uint32_t(id)];
        const auto [buffer, index, offset] = tensor.slot;
        const uint64_t bytes = *tensorExtent(tensor);
        if (bytes > 0 && buffer != BufferKind::Weight && buffer != BufferKind::Input)
          accesses.push_back({buffer, index, offset, offset + bytes, i, writes});
      }
  }
  std::ranges::sort(accesses, {},
                    [](const Access &a) { return std::tuple(a.buffer, a.index, a.begin); });
  return accesses;
}

/// The access that reaches farthest among those of one branch so far, if there is any.
using Farthest = const Access *;

void extend(Farthest &farthest, const Access &access) {
  if (!farthest || farthest->end < access.end)
    farthest = &access;
}

/// Whether a record may be in a detached branch: others would need streams and memory of LibTorch
/// or of a library there.
bool mayBeIn(uint32_t branch, const LaunchRecord &record) {
  if (branch == kCollectiveBranch)
    return isCollective(record);
  return branch == kUpdateBranch && (std::holds_alternative<KernelLaunch>(record.op) ||
                                     std::holds_alternative<Memcpy>(record.op));
}

Status checkRegion(const Bucket &bucket, const ParallelRegion &region) {
  const std::vector<Access> accesses = accessesOf(bucket, region);
  std::array<Farthest, kMaxBranches + 1> touched{}, written{}; // By branch.
  for (const Access &access : accesses) {
    if (&access != accesses.data())
      if (const Access &before = *(&access - 1);
          before.buffer != access.buffer || before.index != access.index)
        touched = written = {};
    const uint32_t branch = bucket.records[access.record].branch;
    for (uint32_t other = 1; other <= kMaxBranches; ++other) {
      const Farthest conflict = (access.writes ? touched : written)[other];
      if (other == branch || !conflict || conflict->end <= access.begin)
        continue;
      const auto [first, second] = std::minmax(conflict->record, access.record);
      return {Code::InvalidFile,
              "records " + std::to_string(first) + " (" + recordName(bucket.records[first]) +
                  ") and " + std::to_string(second) + " (" + recordName(bucket.records[second]) +
                  ") are in different branches and use the same memory"};
    }
    extend(touched[branch], access);
    if (access.writes)
      extend(written[branch], access);
  }
  return Status::ok();
}

} // namespace

Status checkBranches(const Bucket &bucket) {
  for (const LaunchRecord &record : bucket.records)
    if (isDetached(record.branch) && !mayBeIn(record.branch, record))
      return {Code::InvalidFile,
              "a record (" + recordName(record) + ") is in branch " +
                  std::to_string(record.branch) + "; the largest is " +
                  std::to_string(kMaxBranches) + ", but for collectives, which may be in branch " +
                  std::to_string(kCollectiveBranch) + ", and kernels and copies, in branch " +
                  std::to_string(kUpdateBranch)};
  if (std::ranges::max(detachedRecords(bucket)) > kMostDetached)
    return {Code::InvalidFile, "more than " + std::to_string(kMostDetached) +
                                   " records are in one of the branches above " +
                                   std::to_string(kMaxBranches)};
  if (hasHostCalls(bucket) &&
      std::ranges::any_of(bucket.records, [](const LaunchRecord &r) { return r.branch > 0; }))
    return {Code::InvalidFile, "the bucket calls functions of the host and has branches, and host "
                               "calls are between graphs that run one after another"};
  for (const ParallelRegion &region : parallelRegions(bucket.records))
    CGC_TRY(checkRegion(bucket, region));
  return Status::ok();
}

} // namespace cgc
