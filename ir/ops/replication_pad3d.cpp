// aten.replication_pad3d: padding with the elements at the border.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::ReplicationPad3d = {
    .schema = "(Tensor self, int[] padding) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::replicationPad<3>,
    .batch = batch::allButLast<3>,
    .gradient = [](GradientBuilder &b) { return gradient::padded(b, 3, /*mirrored=*/false); },
    .doc = "self [N, C, D, H, W] or [C, D, H, W] padded by its border: padding[0] elements "
           "before and padding[1] after it in the last dimension, then in the ones before; "
           "negative numbers crop.",
};

} // namespace cgc::ir
