// cgc.broadcast: the tensors of rank 0.
#include "ir/ops/collective_rules.h"

namespace cgc::ir {

const OpDef defs::CgcBroadcast = {
    .schema = "(Tensor[] tensors) -> Tensor[]",
    .traits = kOpaque | kMove,
    .infer = rules::sameSizes,
    .gradient = [](GradientBuilder &) -> Status {
      return {Code::Unsupported, "the gradient of a broadcast differs between ranks"};
    },
    .doc =
        "The tensors of rank 0 of a distributed training, on all ranks, which all make the call.",
};

} // namespace cgc::ir
