// cgc.all_reduce: the reduction of tensors over all ranks.
#include "ir/ops/collective_rules.h"

namespace cgc::ir {

const OpDef defs::CgcAllReduce = {
    .schema = "(Tensor[] tensors, str reduction) -> Tensor[]",
    .traits = kOpaque | kMove,
    .infer = [](const InferArgs &args, rules::Results &results) -> Status {
      CGC_TRY(rules::checkReduction(args));
      return rules::sameSizes(args, results);
    },
    .gradient = [](GradientBuilder &b) -> Status {
      const auto reduction = b.arg("reduction").as<std::string>();
      if (reduction == rules::kMaxOfRanks)
        return {Code::Unsupported, "a maximum over ranks has no gradient"};
      return rules::collectiveGradient(b, OpKind::CgcAllReduce, {reduction});
    },
    .doc = "Each tensor's sum, mean or maximum over the ranks of a distributed training, as "
           "reduction says, elementwise: the same on all ranks. All ranks make the call.",
};

} // namespace cgc::ir
