// aten.reflection_pad3d: padding with mirrored elements.
#include "ir/ops/batch_rules.h"
#include "ir/ops/gradient_rules.h"
#include "ir/ops/window_rules.h"

namespace cgc::ir {

const OpDef defs::ReflectionPad3d = {
    .schema = "(Tensor self, int[] padding) -> Tensor",
    .traits = kPure | kMove,
    .infer = rules::reflectionPad<3>,
    .batch = batch::allButLast<3>,
    .gradient = [](GradientBuilder &b) { return gradient::padded(b, 3, /*mirrored=*/true); },
    .doc = "self [N, C, D, H, W] or [C, D, H, W] padded by its mirror image: padding[0] elements "
           "before and padding[1] after it in the last dimension, then in the ones before; "
           "negative numbers crop.",
};

} // namespace cgc::ir
