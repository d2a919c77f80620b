// AccessCheck: the part of validate() that follows what records read and write.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/written_bytes.h"

#include <map>
#include <utility>

namespace cgc {

/// Limit on the byte runs that WrittenBytes::covers may examine for a plan, beyond one for each
/// read.
inline constexpr uint64_t kMaxWrittenSteps = 1 << 20;

/// Takes the records of a bucket in order. InvalidFile says what is wrong; the caller adds which
/// record it is.
class AccessCheck final {
public:
  /// Borrows both. `steps` is how many byte runs may still be examined for the plan, so that a
  /// hostile plan does not take long; it is decremented.
  AccessCheck(const Bucket &bucket, uint64_t &steps) : bucket_(bucket), steps_(steps) {}

  /// Checks that `record`, whose tensors exist, reads only what was written, writes neither weights
  /// nor inputs nor one byte twice, and does work in proportion to the bytes of its tensors.
  Status add(const LaunchRecord &record);

  /// Whether every byte of the tensor has a value: records have written it, or it belongs to a
  /// weight, an input or a state.
  bool hasValue(TensorId id);

  /// Whether records have written all of the output at this index.
  bool writesOutput(uint32_t index);

private:
  Status checkWork(const LaunchRecord &record) const;
  Status checkOrder(const LaunchRecord &record);

  const TensorRef &tensor(TensorId id) const { return bucket_.tensors[uint32_t(id)]; }

  const Bucket &bucket_;
  uint64_t &steps_;
  /// The bytes written to each buffer so far.
  std::map<std::pair<BufferKind, uint32_t>, WrittenBytes> written_;
};

} // namespace cgc
