// cgc.reduce_scatter: a rank's part of the reduction of tensors over all ranks.
#include "ir/ops/collective_rules.h"

namespace cgc::ir {

const OpDef defs::CgcReduceScatter = {
    .schema = "(Tensor[] tensors, str reduction, int ranks) -> Tensor[]",
    .traits = kOpaque | kMove,
    .infer = [](const InferArgs &args, rules::Results &results) -> Status {
      CGC_TRY(rules::checkReduction(args));
      return rules::scattered(args, results);
    },
    .gradient = [](GradientBuilder &b) -> Status {
      if (b.arg("reduction").as<std::string>() != rules::kSumOfRanks)
        return {Code::Unsupported, "only a sum over ranks that is scattered has a gradient"};
      return rules::collectiveGradient(b, OpKind::CgcAllGather, {b.arg("ranks")});
    },
    .doc = "Reduces each tensor over the ranks of a distributed training, as reduction says: sum, "
           "mean or max. Dimension 0 is divided into ranks parts, of which rank r gets the r-th. "
           "All ranks make the call.",
};

} // namespace cgc::ir
