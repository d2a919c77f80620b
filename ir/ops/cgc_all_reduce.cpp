// cgc.all_reduce: the reduction of tensors over all ranks.
#include "ir/ops/collective_rules.h"

namespace cgc::ir {

const OpDef defs::CgcAllReduce = {
    .schema = "(Tensor[] tensors, str reduction, int? shard=none) -> Tensor[]",
    .traits = kOpaque | kMove,
    .infer = [](const InferArgs &args, rules::Results &results) -> Status {
      CGC_TRY(rules::checkReduction(args));
      CGC_TRY(rules::checkShard(args));
      return rules::sameSizes(args, results);
    },
    .gradient = [](GradientBuilder &b) -> Status {
      if (!b.arg("shard").isNone())
        return {Code::Unsupported, "a reduction to one rank has no gradient on the others"};
      const auto reduction = b.arg("reduction").as<std::string>();
      if (reduction == rules::kMaxOfRanks)
        return {Code::Unsupported, "a maximum over ranks has no gradient"};
      return rules::collectiveGradient(b, OpKind::CgcAllReduce, {reduction});
    },
    .doc =
        "Each tensor's sum, mean or maximum over the ranks of a distributed training, as "
        "reduction says, elementwise: the same on all ranks. With shard, only the rank that holds "
        "the states of that shard has the results. All ranks make the call.",
};

} // namespace cgc::ir
