// cgc.all_reduce, all_gather, reduce_scatter and broadcast: calls of NCCL.
#include "backend/lowering.h"

#include "runtime/plan/collective_call.h"

namespace cgc::backend {
namespace {

Reduction reductionOf(const ir::Node &node) {
  const auto &name = node.arg("reduction").as<std::string>();
  return name == "max" ? Reduction::Max : name == "mean" ? Reduction::Mean : Reduction::Sum;
}

/// The place of result `i` of `node`: that of its operand, if the collective may overwrite it, else
/// memory of its own.
Place resultPlace(const ir::Node &node, unsigned i, const ir::Value &operand, const Place &place,
                  CollectiveKind kind, BucketBuilder &builder) {
  const ir::Value &result = *node.result(i);
  if (!hasRanks(kind) && operand.hasOneUse() && builder.isWhole(operand)) {
    builder.setPlace(&result, place);
    return place;
  }
  return builder.allocate(result);
}

Status lower(const ir::Node &node, CollectiveKind kind, BucketBuilder &builder) {
  if (builder.target() != DeviceKind::Cuda)
    return {Code::Unsupported, "several ranks train on GPUs: compile for target cuda"};
  CollectiveCall call;
  call.kind = kind;
  if (reduces(kind))
    call.reduction = reductionOf(node);
  if (hasRanks(kind))
    call.ranks = node.arg("ranks").as<int64_t>();
  if (mayHaveShard(kind) && !node.arg("shard").isNone())
    call.shard = static_cast<uint32_t>(node.arg("shard").as<int64_t>());
  for (const auto &[i, arg] : llvm::enumerate(node.arg("tensors").list())) {
    const Place operand = densePlace(builder.place(arg.value()), builder);
    call.operands.push_back(builder.tensor(operand));
    call.results.push_back(builder.tensor(
        resultPlace(node, static_cast<unsigned>(i), *arg.value(), operand, kind, builder)));
  }
  builder.record({libraryCall(call)});
  return Status::ok();
}

} // namespace

Status lowerAllReduce(const ir::Node &node, BucketBuilder &builder) {
  return lower(node, CollectiveKind::AllReduce, builder);
}

Status lowerAllGather(const ir::Node &node, BucketBuilder &builder) {
  return lower(node, CollectiveKind::AllGather, builder);
}

Status lowerReduceScatter(const ir::Node &node, BucketBuilder &builder) {
  return lower(node, CollectiveKind::ReduceScatter, builder);
}

Status lowerBroadcast(const ir::Node &node, BucketBuilder &builder) {
  return lower(node, CollectiveKind::Broadcast, builder);
}

} // namespace cgc::backend
