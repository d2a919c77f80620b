// cgc.broadcast: the tensors of one rank.
#include "ir/ops/collective_rules.h"

namespace cgc::ir {

const OpDef defs::CgcBroadcast = {
    .schema = "(Tensor[] tensors, int? shard=none) -> Tensor[]",
    .traits = kOpaque | kMove,
    .infer = [](const InferArgs &args, rules::Results &results) -> Status {
      CGC_TRY(rules::checkShard(args));
      return rules::sameSizes(args, results);
    },
    .gradient = [](GradientBuilder &) -> Status {
      return {Code::Unsupported, "the gradient of a broadcast differs between ranks"};
    },
    .doc =
        "The tensors of one rank of a distributed training, on all ranks, which all make the call: "
        "of the one that holds the states of shard, or of rank 0.",
};

} // namespace cgc::ir
