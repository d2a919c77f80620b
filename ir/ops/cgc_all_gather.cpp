// cgc.all_gather: the tensors of all ranks, one after another.
#include "ir/ops/collective_rules.h"

namespace cgc::ir {

const OpDef defs::CgcAllGather = {
    .schema = "(Tensor[] tensors, int ranks) -> Tensor[]",
    .traits = kOpaque | kMove,
    .infer = rules::gathered,
    .gradient = [](GradientBuilder &b) -> Status {
      return rules::collectiveGradient(b, OpKind::CgcReduceScatter,
                                       {rules::kSumOfRanks.str(), b.arg("ranks")});
    },
    .doc = "Each tensor of all ranks of a distributed training, concatenated along dimension 0 in "
           "the order of ranks: the same on all ranks. All ranks make the call.",
};

} // namespace cgc::ir
