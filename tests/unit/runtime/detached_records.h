// Records for tests of the order of detached branches.
#pragma once

#include "runtime/plan/collective_call.h"
#include "tests/unit/runtime/sample_plan.h"

namespace cgc::test {

/// Tensor i is at 256 * i in the arena.
inline Bucket bucketOf(std::vector<LaunchRecord> records) {
  Bucket bucket;
  for (uint32_t i = 0; i < 6; ++i)
    bucket.tensors.push_back(dense(BufferKind::Arena, 0, uint64_t(256) * i, DType::F32, {4}));
  bucket.records = std::move(records);
  return bucket;
}

inline LaunchRecord writes(uint32_t to, uint32_t branch = 0) {
  return {Memset{id(to), 0}, kNoLocation, branch};
}
inline LaunchRecord copies(uint32_t from, uint32_t to, uint32_t branch = 0) {
  return {Memcpy{id(from), id(to)}, kNoLocation, branch};
}
inline LaunchRecord reduced(uint32_t from, uint32_t to) {
  return {libraryCall(
              CollectiveCall{CollectiveKind::AllReduce, Reduction::Sum, 0, {id(from)}, {id(to)}}),
          kNoLocation, kCollectiveBranch};
}

} // namespace cgc::test
