// CollectiveCall: the library calls nccl.all_reduce, all_gather, reduce_scatter and broadcast.
#pragma once

#include "runtime/base/collectives.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan.h"

#include <vector>

namespace cgc {

/// What the ranks of a communicator compute together. The values are part of the plan format.
enum class CollectiveKind : uint8_t {
  AllReduce,     ///< Each result is the reduction of the operand over all ranks, on all or on one.
  AllGather,     ///< Each result has the operands of all ranks, in rank order, in dimension 0.
  ReduceScatter, ///< Each result is this rank's part, in dimension 0, of the reduction.
  Broadcast,     ///< Each result is the operand of one rank.
};
/// The values are part of the plan format.
enum class Reduction : uint8_t { Sum, Mean, Max };

/// One collective of any number of tensors, each reduced, gathered or copied on its own. Tensors
/// are dense; a result has the dtype of its operand. A result may be its operand (AllReduce,
/// Broadcast) and overlaps nothing else.
struct CollectiveCall {
  CollectiveKind kind{};
  Reduction reduction = Reduction::Sum; ///< Of AllReduce and ReduceScatter.
  /// The ranks that the sizes are made for, at most kMaxRanks; 0 for AllReduce and Broadcast, which
  /// take any number.
  int64_t ranks = 0;
  std::vector<TensorId> operands, results; ///< As many of both, at least one.
  /// Of Broadcast: the operands are those of the rank that holds this shard (State::shard); none:
  /// those of rank 0. Of AllReduce: only that rank has the results; none: all ranks.
  std::optional<uint32_t> shard = {};
};

inline constexpr const char *kCollectiveLibrary = "nccl";
/// "all_reduce", "all_gather", "reduce_scatter", "broadcast".
CGC_API const char *collectiveName(CollectiveKind kind);
/// Whether the sizes of the results depend on the number of ranks.
CGC_API bool hasRanks(CollectiveKind kind);
/// Whether it has a reduction.
CGC_API bool reduces(CollectiveKind kind);
/// Whether it may be from or to the rank with a shard.
CGC_API bool mayHaveShard(CollectiveKind kind);
/// Whether `call`, or the call of `record`, is a collective.
CGC_API bool isCollective(const LibraryCall &call);
CGC_API bool isCollective(const LaunchRecord &record);
/// The record of a collective. Reads the operands, writes the results, ints {reduction, ranks},
/// and {reduction, ranks, shard} if there is one.
CGC_API LibraryCall libraryCall(const CollectiveCall &collective);
/// The inverse of libraryCall(), for a call whose tensors exist. InvalidFile, with the reason, if
/// the call could access memory outside its tensors or is no collective that NCCL computes.
CGC_API Result<CollectiveCall> collectiveCall(const LibraryCall &call,
                                              std::span<const TensorRef> tensors);

} // namespace cgc
