// AccessCheck: the part of validate() that follows what records read and write.
#pragma once

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"
#include "runtime/plan/written_bytes.h"

#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace cgc {

/// Limit on the byte runs that WrittenBytes::covers may examine for a plan, beyond one for each
/// read.
inline constexpr uint64_t kMaxWrittenSteps = 1 << 20;

/// Takes the records of a bucket in order. InvalidFile says what is wrong; the caller adds which
/// record it is.
class AccessCheck final {
public:
  /// Borrows all. `steps` is how many byte runs may still be examined for the plan, so that a
  /// hostile plan does not take long; it is decremented.
  AccessCheck(const PlanData &plan, const Bucket &bucket, uint64_t &steps)
      : plan_(plan), bucket_(bucket), steps_(steps) {}

  /// Checks that `record`, whose tensors exist, reads only what was written on the ranks that run
  /// it, uses states of one shard at most, writes neither weights nor inputs nor one byte twice,
  /// and does work in proportion to the bytes of its tensors.
  Status add(const LaunchRecord &record);

  /// Checks, after all records, that each state outside of shards that records of one shard write
  /// was sent to all ranks.
  Status checkSent() const;

  /// Whether every byte of the tensor has a value: records have written it, or it belongs to a
  /// weight, an input or a state.
  bool hasValue(TensorId id);

  /// Whether records have written all of the output at this index.
  bool writesOutput(uint32_t index);

private:
  using Shard = std::optional<uint32_t>;
  Status checkWork(const LaunchRecord &record) const;
  Status checkOrder(const LaunchRecord &record);
  /// The shard of the states that a record uses, or the one from or to whose rank a collective is.
  Result<Shard> shardOf(const LaunchRecord &record) const;
  /// hasValue(), on the ranks that hold `shard`.
  bool hasValue(TensorId id, Shard shard);

  const TensorRef &tensor(TensorId id) const { return bucket_.tensors[uint32_t(id)]; }

  const PlanData &plan_;
  const Bucket &bucket_;
  uint64_t &steps_;
  using Buffer = std::pair<BufferKind, uint32_t>;
  /// Adds a write by the rank with `shard` alone: what others and other shards had is gone.
  void addOfShard(const TensorRef &accessed, uint32_t shard);

  /// The bytes that each buffer has on all ranks.
  std::map<Buffer, WrittenBytes> written_;
  /// Those that only the rank with a shard has.
  std::map<Buffer, std::map<uint32_t, WrittenBytes>> writtenByShards_;
  /// The states outside of shards with a value that only the rank with a shard has.
  std::map<uint32_t, uint32_t> unsent_;
};

} // namespace cgc
